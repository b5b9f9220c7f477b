#include "sim/run/predict.hpp"

#include <fmt/core.h>

#include "sim/engine/simulate.hpp"
#include "sim/policy/build_plan.hpp"

namespace tidegate {
namespace {

// Work that the GPUs of one node do in one iteration, recomputation included.
Flops computed(const Plan& plan) {
  std::vector<Flops> by_work;
  for (const Work& work : plan.works) {
    Flops sum;
    if (const auto* compute = std::get_if<Compute>(&work)) {
      for (const Kernel& k : compute->kernels) sum += flops_of(k);
    }
    by_work.push_back(sum);
  }
  Flops all;
  for (const Task& task : plan.tasks) all += by_work[index(task.work)];
  return all / plan.iterations;
}

std::vector<std::string> assumptions_of(const Machine& machine) {
  std::vector<std::string> lines;
  for (const Provenance& p : machine.provenance()) {
    if (p.assumed) lines.push_back(fmt::format("{} = {} ({})", p.key, p.value, p.source));
  }
  return lines;
}

RunFacts facts_of(const Scenario& scenario, const LayerGraph& graph, const Plan& plan) {
  const auto nodes = static_cast<double>(scenario.machine.nodes());
  const std::int64_t world = scenario.ranks * scenario.machine.nodes();
  const auto steps = static_cast<double>(world * scenario.workload.accumulation);
  RunFacts facts{.scenario = scenario.name,
                 .policy = scenario.policy.describe(),
                 .profile = scenario.machine.name(),
                 .revision = revision(),
                 .parameters = graph.parameters,
                 .active_parameters = graph.active_parameters,
                 .tokens_per_iteration = graph.tokens * world * scenario.workload.accumulation,
                 .gpus = static_cast<std::int32_t>(world),
                 .model_flops = 3 * steps * graph.forward_flops(),
                 .hardware_flops = nodes * computed(plan),
                 .assumptions = assumptions_of(scenario.machine),
                 .notes = {},
                 .next = {},
                 .storage = {}};
  for (const StoragePath& path : scenario.machine.paths()) {
    facts.storage.push_back({path.name, Bytes(path.endurance_bytes), path.write_amplification});
  }
  return facts;
}

}  // namespace

const char* revision() { return TIDEGATE_REVISION; }

Prediction predict(Scenario& scenario) {
  Prediction p;
  p.graph = build_graph(scenario.workload);
  const Setting setting{.graph = p.graph,
                        .machine = scenario.machine,
                        .zero = scenario.policy.zero,
                        .accumulation = scenario.workload.accumulation,
                        .ranks = scenario.ranks,
                        .world = scenario.ranks * scenario.machine.nodes(),
                        .loading = scenario.loading,
                        .pins_powers_of_two = scenario.policy.pins_powers_of_two};
  p.plan = build_plan(setting, scenario.policy, scenario.iterations);
  p.demands = price(p.plan, scenario.machine);
  p.timeline = simulate(p.plan, p.demands, scenario.machine.resources());
  p.report = summarize(p.plan, p.timeline, p.demands, scenario.machine.resources(),
                       facts_of(scenario, p.graph, p.plan));
  return p;
}

}  // namespace tidegate
