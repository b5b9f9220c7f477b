#include "sim/scenario/scenario.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <fmt/core.h>

#include "models/base/yaml.hpp"
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

void check(yaml::Map& map, const Workload& workload) {
  if (workload.tensor_parallel == 1) return;
  map.at("workload")
      .problem("tensor_parallel: ranks are data-parallel in this version; set it to 1");
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

yaml::Value scenario_values(const std::string& path, const std::vector<Override>& overrides) {
  yaml::Value root = yaml::load_file(path);
  for (const auto& [key, text] : overrides) {
    if (!key.starts_with(machine_prefix)) yaml::set(root, key, text, {"--set " + key, 0, 0});
  }
  return root;
}

Scenario load_scenario(const std::string& path, const std::vector<Override>& overrides) {
  yaml::Document document(scenario_values(path, overrides));
  // The machine comes first, from its own file: the policy is read against it.
  const std::string base = directory_of(path);
  const auto [profile, profile_file] = find_hardware(scenario_values(path, overrides), base);
  Machine machine = load_machine(profile_file, machine_overrides(overrides));
  Scenario scenario{.name = std::filesystem::path(path).stem().string(),
                    .workload = {},
                    .profile = profile,
                    .machine = std::move(machine),
                    .policy = {},
                    .ranks = 1,
                    .iterations = 6};
  {
    yaml::Map map = document.root().map();
    scenario.name = map.text_or("name", scenario.name);
    map.text_or("hardware", "");
    map.text_or("description", "");
    scenario.workload = read_workload(map.at("workload"), base);
    scenario.policy = read_policy(map.at("policy"), scenario.machine);
    scenario.ranks = read_ranks(map, scenario.machine);
    if (const auto count = map.find("iterations")) {
      const std::int64_t iterations = count->count(1);
      if (iterations > most_iterations) {
        count->problem(fmt::format("is {}; at most {} are simulated", iterations, most_iterations));
      }
      scenario.iterations =
          static_cast<std::int32_t>(std::min<std::int64_t>(iterations, most_iterations));
    }
    check(map, scenario.workload);
  }
  document.finish();
  return scenario;
}

}  // namespace tidegate
