#include "sim/run/predict.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/policy/build_plan.hpp"
#include "sim/policy/layout.hpp"
#include "sim/run/tiring.hpp"

namespace tidegate {
namespace {

// Work that the GPUs of the plan did per iteration, recomputation included.
Flops computed(const Plan& plan, const Timeline& timeline) {
  std::vector<Flops> by_work;
  for (const Work& work : plan.works) {
    Flops sum;
    if (const auto* compute = std::get_if<Compute>(&work)) {
      for (const Kernel& k : compute->kernels) sum += flops_of(k);
    }
    by_work.push_back(sum);
  }
  Flops all;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    if (!is_skipped(plan, TaskId{t}, timeline)) all += by_work[index(plan.tasks[t].work)];
  }
  return all / plan.iterations;
}

std::vector<std::string> assumptions_of(const Machine& machine) {
  std::vector<std::string> lines;
  for (const Provenance& p : machine.provenance()) {
    if (p.assumed) lines.push_back(fmt::format("{} = {} ({})", p.key, p.value, p.source));
  }
  return lines;
}

// `machine` is the part that is simulated: its paths are those of the plan.
RunFacts facts_of(const Scenario& scenario, const LayerGraph& graph, const Layout& layout,
                  const Machine& machine, const Plan& plan, const Timeline& timeline) {
  const std::int64_t data = layout.data();
  const auto& p = layout.parallel();
  // The graph is what one tensor-parallel rank computes of all stages.
  const auto steps = static_cast<double>(data * p.tensor * scenario.workload.accumulation);
  const double ranks_per_rank_here =
      static_cast<double>(layout.world()) / static_cast<double>(layout.ranks());
  RunFacts facts{.scenario = scenario.name,
                 .policy = scenario.policy.describe(),
                 .profile = scenario.machine.name(),
                 .revision = revision(),
                 .parameters = graph.parameters,
                 .active_parameters = graph.active_parameters,
                 .tokens_per_iteration = graph.tokens * data * scenario.workload.accumulation,
                 .gpus = static_cast<std::int32_t>(layout.world()),
                 .fold = machine.fold(),
                 .parts = {machine.parts().begin(), machine.parts().end()},
                 .model_flops = 3 * steps * graph.forward_flops(),
                 .hardware_flops = ranks_per_rank_here * computed(plan, timeline),
                 .assumptions = assumptions_of(scenario.machine),
                 .notes = {},
                 .engine_remarks = {},
                 .next = {},
                 .storage = {},
                 .allocator = scenario.allocator};
  for (const StoragePath& part : machine.paths()) {
    const StoragePath path = part.times(machine.fold());
    facts.storage.push_back({.name = path.name,
                             .rated = Bytes(path.endurance_bytes),
                             .write_amplification = path.write_amplification,
                             .rated_write_amplification = path.rated_write_amplification,
                             .capacity = path.is_shared ? Bytes(0) : path.capacity,
                             .warranty_years = path.warranty_years});
  }
  return facts;
}

}  // namespace

const char* revision() { return TIDEGATE_REVISION; }

Machine machine_here(const Scenario& scenario, const Machine& machine) {
  const Layout layout = layout_of(scenario);
  // Data-parallel ranks of one node see the whole node, used or not.
  const bool is_whole_node =
      layout.nodes_here() == 1 && layout.tensor_here() == layout.parallel().tensor;
  if (is_whole_node) return machine;
  const auto fold = static_cast<std::int32_t>(layout.parallel().tensor / layout.tensor_here());
  return machine.part(layout.nodes_here(), layout.gpus_per_node_here(), fold);
}

Layout layout_of(const Scenario& scenario) {
  const Workload& w = scenario.workload;
  return Layout({w.tensor_parallel, w.pipeline_parallel, w.interleave}, scenario.machine.nodes(),
                scenario.ranks, scenario.policy.stays_on_gpu() && !scenario.plans_every_rank);
}

Setting setting_of(const Scenario& scenario, const LayerGraph& graph, const Machine& machine,
                   const Layout& layout) {
  return {.graph = graph,
          .machine = machine,
          .zero = scenario.policy.zero,
          .accumulation = scenario.workload.accumulation,
          .layout = layout,
          .loading = scenario.loading,
          .pins_powers_of_two = scenario.policy.pins_powers_of_two};
}

namespace {

// Instants are 63 bits of picoseconds, 106 days. A run takes hardly longer than all its tasks one
// after the other; drives on which reads and writes meet lose less than half.
void check_length(const Plan& plan, const std::vector<Demand>& demands) {
  constexpr double most_days = 50, day = 86400;
  Seconds all, longest;
  for (const Task& task : plan.tasks) {
    const Demand& demand = demands[index(task.work)];
    all += demand.latency + demand.alone;
    longest = std::max(longest, demand.latency + demand.alone);
  }
  if (all.value() <= most_days * day) return;
  throw InputError(fmt::format(
      "{} iterations have {:.3g} days of work, the longest task {}; {} days at most can be "
      "simulated: take fewer iterations, or look for a rate that is far too small",
      plan.iterations, all.value() / day, to_text(longest), most_days));
}

SimulatedPlan simulated(const Setting& setting, Scenario& scenario) {
  SimulatedPlan run;
  const auto resources = setting.machine.resources();
  run.resources.assign(resources.begin(), resources.end());
  ActivationPolicy& activations = *scenario.policy.activations;
  if (const std::int32_t profiling = activations.profiling_iterations(); profiling > 0) {
    const Plan profile = build_plan(setting, scenario.policy, profiling);
    const std::vector<Demand> demands = price(profile, setting.machine);
    check_length(profile, demands);
    activations.learn(simulate(profile, demands, run.resources));
  }
  run.plan = build_plan(setting, scenario.policy, scenario.iterations);
  run.demands = price(run.plan, setting.machine);
  check_length(run.plan, run.demands);
  run.timeline = simulate(run.plan, run.demands, run.resources);
  return run;
}

}  // namespace

SimulatedPlan simulate_scenario(const Setting& setting, Scenario& scenario) {
  SimulatedPlan run = simulated(setting, scenario);
  // What more would take has no use: whoever waits for a cache that large asks for them.
  constexpr std::int64_t most = 48;
  const std::int64_t needed = iterations_until_tired(run);
  if (needed <= scenario.iterations || needed > most) return run;
  scenario.iterations = static_cast<std::int32_t>(needed);
  return simulated(setting, scenario);
}

Prediction predict(Scenario& scenario) {
  LayerGraph graph = build_graph(scenario.workload);
  const Layout layout = layout_of(scenario);
  const Machine machine = machine_here(scenario, scenario.machine);
  SimulatedPlan r = simulate_scenario(setting_of(scenario, graph, machine, layout), scenario);
  RunFacts facts = facts_of(scenario, graph, layout, machine, r.plan, r.timeline);
  if (const std::int64_t needed = iterations_until_tired(r); needed > scenario.iterations) {
    facts.notes.push_back(
        fmt::format("a long run fills the cache of a drive, and the iterations reported are not "
                    "yet behind that: later ones take longer, as --iterations {} shows",
                    needed));
  }
  Report report = summarize(r.plan, r.timeline, r.demands, r.resources, std::move(facts));
  return {.graph = std::move(graph),
          .plan = std::move(r.plan),
          .demands = std::move(r.demands),
          .resources = std::move(r.resources),
          .timeline = std::move(r.timeline),
          .report = std::move(report)};
}

}  // namespace tidegate
