#include "sim/planner/job.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/graph/layer_graph.hpp"
#include "sim/run/predict.hpp"

namespace tidegate::planner {
namespace {

// Where a search begins when the scenario has no policy, or one that the machine cannot have: what
// needs least GPU memory.
constexpr const char* start_with_drives =
    "{zero: {stage: 3}, activations: {name: recompute, mode: full}, optimizer: {name: "
    "zero_infinity, path: nvme}}";
constexpr const char* start_without_drives =
    "{zero: {stage: 3}, activations: {name: recompute, mode: full}, optimizer: zero_offload}";

/// How a machine divides the batch at first; the search changes it.
struct Division {
  std::int64_t tensor = 1, micro_batch = 1, accumulation = 1;
};

// As few tensor-parallel ranks as the batch allows.
std::optional<Division> division_of(const Job& job, const Build& b, const Workload& w) {
  const std::int64_t most = w.explicit_layers.empty() ? b.gpus : 1;
  for (std::int64_t t = 1; t <= most; t *= 2) {
    const std::int64_t ranks = b.nodes * b.gpus / t;
    if (b.gpus % t != 0 || job.sequences % ranks != 0) continue;
    const std::int64_t each = job.sequences / ranks;
    const bool keeps = each % w.micro_batch == 0;
    if (!keeps && !w.explicit_layers.empty()) continue;
    const std::int64_t micro = keeps ? w.micro_batch : 1;
    return Division{t, micro, each / micro};
  }
  return std::nullopt;
}

Workload workload_of(const Job& job) {
  yaml::Document document(scenario_values(job.source, job.overrides),
                          yaml::Document::Faults::dropped);
  yaml::Map map = document.root().map();
  const std::string folder = std::filesystem::path(job.source.path).parent_path().string();
  return read_workload(map.at("workload"), folder.empty() ? "." : folder);
}

bool has_policy(const Job& job) {
  return scenario_values(job.source, job.overrides).find("policy") != nullptr;
}

std::vector<Override> division_sets(const Division& d, const Build& b) {
  return {{"ranks", std::to_string(b.gpus)},
          {"workload.tensor_parallel", std::to_string(d.tensor)},
          {"workload.sequence_parallel", d.tensor > 1 ? "true" : "false"},
          {"workload.pipeline_parallel", "1"},
          {"workload.interleave", "1"},
          {"workload.micro_batch", std::to_string(d.micro_batch)},
          {"workload.accumulation", std::to_string(d.accumulation)}};
}

}  // namespace

std::string first_problem(const InputError& error) {
  const Problem& p = error.problems().front();
  return p.key.empty() ? p.text : p.key + ": " + p.text;
}

Start start_of(const Catalog& catalog, const Build& b, const Job& job) {
  const auto division = division_of(job, b, workload_of(job));
  if (!division) {
    return {.evaluator = nullptr,
            .sets = {},
            .refusal = fmt::format("a batch of {} sequences does not divide over {} GPUs",
                                   job.sequences, b.nodes * b.gpus),
            .note = "",
            .why = ""};
  }
  Start start;
  start.sets = sets_of(catalog, b);
  for (Override& set : division_sets(*division, b)) start.sets.push_back(std::move(set));
  const auto evaluator = [&] {
    std::vector<Override> all(job.overrides);
    all.insert(all.end(), start.sets.begin(), start.sets.end());
    return std::make_unique<Evaluator>(job.source, all);
  };
  start.why = "the scenario has none";
  if (has_policy(job)) {
    try {
      start.evaluator = evaluator();
      start.why.clear();
      return start;
    } catch (const InputError& error) {
      start.why = first_problem(error);
    }
  }
  start.sets.emplace_back("policy", b.drives > 0 ? start_with_drives : start_without_drives);
  start.note =
      "the search for a policy begins at full recomputation and ZeRO-3 (" + start.why + ")";
  try {
    start.evaluator = evaluator();
  } catch (const InputError& error) {
    start.refusal = first_problem(error);
  }
  return start;
}

std::vector<Override> together(const std::vector<Override>& first,
                               const std::vector<Override>& second) {
  std::vector<Override> all;
  for (const Override& set : first) {
    if (std::ranges::find(second, set.first, &Override::first) == second.end()) all.push_back(set);
  }
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

std::vector<Override> policy_of(const std::vector<Override>& sets) {
  std::vector<Override> policy;
  for (const Override& set : sets) {
    const bool is_machine =
        set.first == "hardware" || set.first == "ranks" || set.first.starts_with("machine.");
    if (!is_machine) policy.push_back(set);
  }
  return policy;
}

namespace {

// On as many GPUs as this machine has, the batch is divided as the start has it.
std::vector<Override> without_division(std::vector<Override> sets) {
  std::erase_if(sets, [](const Override& set) { return set.first.starts_with("workload."); });
  return sets;
}

struct Beginning {
  std::string name;  // for the note
  std::vector<Override> sets;
};

std::vector<Override> policy_sets(const char* stage, const char* optimizer,
                                  const char* activations) {
  return {{"policy.zero.stage", stage},
          {"policy.parameters", "resident"},
          {"policy.optimizer", optimizer},
          {"policy.activations", activations}};
}

// What people try first, from the least offloaded on. What cannot fit is told by its bound.
std::vector<Beginning> usual_beginnings() {
  constexpr const char* recompute = "{name: recompute, mode: full}";
  return {{"the optimizer on the GPU and ZeRO-3", policy_sets("3", "resident", "keep")},
          {"the optimizer on the GPU, ZeRO-1 and full recomputation",
           policy_sets("1", "resident", recompute)},
          {"the optimizer on the GPU, ZeRO-3 and full recomputation",
           policy_sets("3", "resident", recompute)},
          {"the optimizer on the host, ZeRO-2 and full recomputation",
           policy_sets("2", "zero_offload", recompute)}};
}

std::vector<Beginning> beginnings(const std::vector<std::vector<Override>>& known) {
  std::vector<Beginning> all = usual_beginnings();
  for (const std::vector<Override>& sets : known) {
    all.push_back({"that of another machine", sets});
    all.push_back({"that of another machine", without_division(sets)});
  }
  return all;
}

}  // namespace

Start better_start(Start start, const Job& job, const std::vector<std::vector<Override>>& known) {
  const Evaluator& evaluator = *start.evaluator;
  const auto time_of = [&](const std::vector<Override>& sets) {
    const Trial trial = evaluator.simulate(sets);
    return trial.fits ? trial.iteration_time : Seconds(std::numeric_limits<double>::infinity());
  };
  const auto divides_alike = [&](const Scenario& s) {
    return layout_of(s).data() * s.workload.micro_batch * s.workload.accumulation == job.sequences;
  };
  Beginning best;
  Seconds least = time_of({});
  for (Beginning& other : beginnings(known)) {
    const Screening screening = evaluator.screen(other.sets);
    if (!screening.refusal.empty() || !screening.bound.may_fit()) continue;
    if (screening.bound.time >= least || !divides_alike(evaluator.scenario(other.sets))) continue;
    const Seconds time = time_of(other.sets);
    if (time < least) least = time, best = std::move(other);
  }
  if (best.sets.empty()) return start;
  start.sets = together(start.sets, best.sets);
  start.note = "the search for a policy begins at " + best.name;
  if (!start.why.empty()) start.note += " (" + start.why + ")";
  std::vector<Override> all(job.overrides);
  all.insert(all.end(), start.sets.begin(), start.sets.end());
  start.evaluator = std::make_unique<Evaluator>(job.source, all);
  return start;
}

Job job_of(const ScenarioSource& source, const std::vector<Override>& overrides, double tokens,
           std::int64_t sequences) {
  for (const auto& [key, value] : overrides) {
    if (key != "hardware" && !key.starts_with("machine.")) continue;
    throw InputError(fmt::format(
        "--set {}: machines come from the catalog; set it there, or in a profile of your own",
        key));
  }
  Job job{.name = source.name,
          .source = source,
          .overrides = overrides,
          .sequences = sequences,
          .tokens = tokens};
  const yaml::Value values = scenario_values(source, overrides);
  const yaml::Value* name = values.find("name");
  if (name != nullptr) job.name = name->text;
  Workload workload;
  if (values.find("hardware") != nullptr) {
    std::vector<Override> all(overrides);
    if (values.find("policy") == nullptr) all.emplace_back("policy", "{}");
    const Scenario own = load_scenario(source, all);
    workload = own.workload;
    if (sequences == 0)
      job.sequences = layout_of(own).data() * workload.micro_batch * workload.accumulation;
  } else {
    yaml::Document document(values);
    {
      yaml::Map map = document.root().map();
      map.ignore_rest();
      const std::string folder = std::filesystem::path(source.path).parent_path().string();
      workload = read_workload(map.at("workload"), folder.empty() ? "." : folder);
    }
    document.finish();
    if (sequences == 0) {
      throw InputError(
          values.where, "hardware",
          "is not given, so that the batch of an iteration is not known; add --batch "
          "SEQUENCES, or --hardware NODE: the machine that micro_batch and accumulation are for");
    }
  }
  const LayerGraph graph = build_graph(workload);
  job.tokens_per_sequence =
      static_cast<double>(graph.tokens) / static_cast<double>(workload.micro_batch);
  if (graph.tokens == 0)
    throw InputError(values.where, "workload.sequence", "is missing; costs are told per token");
  return job;
}

}  // namespace tidegate::planner
