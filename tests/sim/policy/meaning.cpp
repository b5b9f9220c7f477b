#include "tests/sim/policy/meaning.hpp"

#include <cmath>
#include <random>

#include "sim/engine/simulate.hpp"
#include "sim/policy/build_plan.hpp"

namespace tidegate::meant {

Run run(const std::vector<Override>& overrides) {
  Run r{.scenario = load_scenario(
            std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/mlp_offload_70b.yaml", overrides),
        .graph = {},
        .plan = {},
        .timeline = {}};
  Scenario& s = r.scenario;
  r.graph = build_graph(s.workload);
  const Workload& w = s.workload;
  const Setting setting{.graph = r.graph,
                        .machine = s.machine,
                        .zero = s.policy.zero,
                        .accumulation = w.accumulation,
                        .layout = Layout({w.tensor_parallel, w.pipeline_parallel, w.interleave},
                                         s.machine.nodes(), s.ranks, s.policy.stays_on_gpu()),
                        .loading = s.loading,
                        .pins_powers_of_two = s.policy.pins_powers_of_two,
                        .carries_meaning = true};
  if (const auto profiling = s.policy.activations->profiling_iterations(); profiling > 0)
    s.policy.activations->learn(simulate(build_plan(setting, s.policy, profiling), s.machine));
  r.plan = build_plan(setting, s.policy, s.iterations);
  r.timeline = simulate(r.plan, s.machine);
  return r;
}

Timeline shuffled(const Run& run, std::uint64_t seed) {
  std::vector<Demand> demands = price(run.plan, run.scenario.machine);
  std::mt19937_64 random(seed);
  for (Demand& d : demands) {
    // Powers of two from 1/64 to 64 of the time alone: fast and slow devices change places.
    const double factor = std::ldexp(1.0, static_cast<int>(random() % 13) - 6);
    d.alone = factor * d.alone;
    d.latency = factor * d.latency;
  }
  return simulate(run.plan, demands, run.scenario.machine.resources());
}

std::vector<Override> small(int ranks, int accumulation) {
  return {{"workload.network.layers", "4"},
          {"workload.network.hidden", "512"},
          {"workload.network.ffn", "2048"},
          {"workload.network.heads", "8"},
          {"workload.network.kv_heads", "4"},
          {"workload.network.vocabulary", "8192"},
          {"workload.sequence", "256"},
          {"workload.accumulation", std::to_string(accumulation)},
          {"policy.zero.reduce_bucket_size", "4000000"},
          {"machine.paths.nvme.gpudirect", "true"},
          {"machine.gpus.count", std::to_string(ranks)},
          {"ranks", std::to_string(ranks)},
          {"iterations", "4"}};
}

}  // namespace tidegate::meant
