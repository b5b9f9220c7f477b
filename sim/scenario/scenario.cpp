#include "sim/scenario/scenario.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "models/base/file_kind.hpp"
#include "models/base/yaml.hpp"
#include "models/cited.hpp"
#include "models/profile.hpp"

namespace tidegate {
namespace {

constexpr std::string_view machine_prefix = "machine.";

std::string directory_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::vector<Override> machine_overrides(const std::vector<Override>& overrides) {
  std::vector<Override> mine;
  for (const auto& [key, text] : overrides) {
    if (key.starts_with(machine_prefix)) mine.emplace_back(key.substr(machine_prefix.size()), text);
  }
  return mine;
}

void override_keys(yaml::Value& root, const std::vector<Override>& overrides) {
  for (const auto& [key, text] : overrides) {
    if (!key.starts_with(machine_prefix)) yaml::set(root, key, text, {"--set " + key, 0, 0});
  }
}

// The profile that a scenario names, and its file. Other problems of the scenario wait.
std::pair<std::string, std::string> find_hardware(yaml::Value root, const std::string& base) {
  yaml::Document peek(std::move(root), yaml::Document::Faults::dropped);
  const yaml::Node top = peek.root();
  yaml::Map map = top.map();
  const auto node = map.find("hardware");
  const std::string profile = node ? node->text() : "";
  const Where where = node ? node->where() : top.where();
  if (profile.empty()) {
    throw InputError(where, "hardware", "is missing; name a profile of hw_profiles/ or a file");
  }
  try {
    return {profile, find_profile(profile, base)};
  } catch (const InputError& error) {
    throw InputError(where, "hardware", error.problems().front().text);
  }
}

std::uint16_t read_ranks(yaml::Map& map, const Machine& machine) {
  const auto gpus = static_cast<std::int64_t>(machine.gpu_count());
  const auto node = map.find("ranks");
  if (!node) return static_cast<std::uint16_t>(gpus);
  const std::int64_t ranks = node->count(1);
  if (ranks > gpus) {
    node->problem(fmt::format("is {}, but a node of {} has {} GPU{}", ranks, machine.name(), gpus,
                              gpus == 1 ? "" : "s"));
    return 1;
  }
  return static_cast<std::uint16_t>(ranks);
}

AllocatorOptions read_memory(const yaml::Node& node) {
  yaml::Map map = node.map();
  AllocatorOptions options;
  options.expandable_segments = map.flag_or("expandable_segments", false);
  const auto most = map.find("max_split_size");
  if (!most) return options;
  // PyTorch refuses less, and with expandable segments a block of any size is split.
  const Bytes size = most->quantity<Bytes>();
  if (size <= Bytes(20.0 * 1024 * 1024)) {
    most->problem(fmt::format("is {}; write more than 20 MiB, or leave it out", to_text(size)));
  } else if (options.expandable_segments) {
    most->problem("applies without expandable_segments; leave one of them out");
  } else {
    options.max_split_size = static_cast<std::int64_t>(std::min(size.value(), 0x1p62));
  }
  return options;
}

// Whether the ranks can be divided as the workload asks.
void check_layout(yaml::Map& map, const Workload& w, std::int64_t ranks, std::int64_t nodes,
                  std::int64_t zero_stage) {
  const std::int64_t t = w.tensor_parallel, p = w.pipeline_parallel, gpus = ranks * nodes;
  const auto problem = [&](const char* key, const std::string& text) {
    yaml::Map workload = map.at("workload").map();
    workload.ignore_rest();
    workload.find(key).value_or(workload.node()).problem(text);
  };
  if (!w.explicit_layers.empty() && t > 1) {
    problem("tensor_parallel",
            "splits a network of known shape; give the layers of one rank as "
            "they are, and set it to 1");
  } else if (ranks % t != 0) {
    problem("tensor_parallel",
            fmt::format("is {}, which does not divide the {} ranks of a node; a group stays within "
                        "a node",
                        t, ranks));
  } else if (gpus % (t * p) != 0) {
    problem("pipeline_parallel",
            fmt::format("is {}: {} x {} tensor-parallel ranks do not divide the {} GPUs of {} "
                        "node{}; set machine.network.nodes or ranks",
                        p, p, t, gpus, nodes, nodes == 1 ? "" : "s"));
  } else if (const std::int64_t stage = gpus / p; stage % ranks != 0 && ranks % stage != 0) {
    problem("pipeline_parallel",
            fmt::format("is {}: a stage of {} GPUs would lie across nodes of {}; let a stage be "
                        "whole nodes or part of one",
                        p, stage, ranks));
  }
  if (p > 1 && zero_stage > 1) {
    problem("pipeline_parallel",
            fmt::format("goes with zero.stage 0 or 1, as in DeepSpeed and Megatron-LM; the stage "
                        "is {}",
                        zero_stage));
  }
}

// Keys of the profile as the command line writes them.
InputError with_machine_keys(const InputError& error) {
  std::vector<Problem> problems = error.problems();
  for (Problem& p : problems) {
    if (p.where.file != override_name) continue;
    p.key = std::string(machine_prefix) + p.key;
    p.where = {"--set " + p.key, 0, 0};
  }
  return InputError(std::move(problems));
}

std::pair<yaml::Value, Machine> machine_of(const std::string& file,
                                           const std::vector<Override>& overrides) {
  try {
    yaml::Value hardware = profile_values(file, machine_overrides(overrides));
    Machine machine = read_machine(hardware);
    return {std::move(hardware), std::move(machine)};
  } catch (const InputError& error) {
    throw with_machine_keys(error);
  }
}

// The machine comes first, from its own file: the policy is read against it.
Draft draft(yaml::Value root, const std::string& name, const std::string& path,
            const std::vector<Override>& overrides) {
  override_keys(root, overrides);
  auto [profile, file] = find_hardware(root, directory_of(path));
  auto [hardware, machine] = machine_of(file, overrides);
  return {std::move(root), name, path, std::move(profile), std::move(hardware), std::move(machine)};
}

Scenario scenario_of(Draft draft) {
  yaml::Document document(std::move(draft.root));
  const std::string base = directory_of(draft.path);
  Scenario scenario{.name = draft.name,
                    .workload = {},
                    .profile = draft.profile,
                    .hardware = std::move(draft.hardware),
                    .machine = std::move(draft.machine),
                    .policy = {},
                    .loading = {},
                    .ranks = 1,
                    .iterations = 6,
                    .allocator = {}};
  {
    yaml::Map map = document.root().map();
    scenario.name = map.text_or("name", scenario.name);
    map.text_or("hardware", "");
    map.text_or("description", "");
    scenario.workload = read_workload(map.at("workload"), base);
    scenario.policy = read_policy(map.at("policy"), scenario.machine);
    if (const auto loading = map.find("loading")) {
      scenario.loading = read_loading(*loading, scenario.policy.zero.stage);
    }
    scenario.ranks = read_ranks(map, scenario.machine);
    if (const auto count = map.find("iterations")) {
      const std::int64_t iterations = count->count(1);
      if (iterations > most_iterations) {
        count->problem(fmt::format("is {}; at most {} are simulated", iterations, most_iterations));
      }
      scenario.iterations =
          static_cast<std::int32_t>(std::min<std::int64_t>(iterations, most_iterations));
    }
    if (const auto memory = map.find("memory")) scenario.allocator = read_memory(*memory);
    const std::int32_t least = scenario.policy.activations->least_iterations();
    if (scenario.iterations < least) {
      map.find("iterations")
          .value_or(map.node())
          .problem(
              fmt::format("is {}; the activations of this policy are steady from {} iterations on",
                          scenario.iterations, least));
    }
    if (!scenario.policy.activations->knows_pipelines() &&
        scenario.workload.pipeline_parallel > 1) {
      map.at("policy").problem(
          "activations: this planner knows one micro-batch at a time; use "
          "keep, recompute or ssdtrain with pipeline_parallel");
    }
    check_layout(map, scenario.workload, scenario.ranks, scenario.machine.nodes(),
                 scenario.policy.zero.stage);
  }
  document.finish();
  return scenario;
}

}  // namespace

Override read_override(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw InputError(fmt::format(
        "--set {}: write key=value, for example policy.optimizer.buffer_count=32", text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

ScenarioSource scenario_source(const std::string& path) {
  yaml::Value root = yaml::load_file(path);
  expect(FileKind::scenario, root);
  return {std::move(root), std::filesystem::path(path).stem().string(), path};
}

yaml::Value scenario_values(const ScenarioSource& source, const std::vector<Override>& overrides) {
  yaml::Value root = source.root;
  override_keys(root, overrides);
  return root;
}
yaml::Value scenario_values(const std::string& path, const std::vector<Override>& overrides) {
  return scenario_values(scenario_source(path), overrides);
}

Scenario load_scenario(const ScenarioSource& source, const std::vector<Override>& overrides) {
  return read_scenario(source.root, source.name, source.path, overrides);
}
Scenario load_scenario(const std::string& path, const std::vector<Override>& overrides) {
  return load_scenario(scenario_source(path), overrides);
}

Draft draft_scenario(const std::string& path, const std::vector<Override>& overrides) {
  ScenarioSource source = scenario_source(path);
  return draft(std::move(source.root), source.name, path, overrides);
}

Scenario read_scenario(yaml::Value root, const std::string& name, const std::string& path,
                       const std::vector<Override>& overrides) {
  return scenario_of(draft(std::move(root), name, path, overrides));
}

Scenario read_scenario(const Draft& draft, const std::vector<Override>& overrides) {
  const bool is_other_machine = std::ranges::any_of(overrides, [](const Override& o) {
    return o.first == "hardware" || o.first.starts_with(machine_prefix);
  });
  ensure(!is_other_machine, "a variation of a draft keeps its machine");
  Draft varied(draft);
  override_keys(varied.root, overrides);
  return scenario_of(std::move(varied));
}

}  // namespace tidegate
