// What graph, plan and simulation of a network of 70B parameters cost at the granularity of
// tensors, eight ranks, three iterations; and how that grows with layers and with micro-batches.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "bench/measure.hpp"
#include "models/base/error.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/policy/build_plan.hpp"
#include "sim/scenario/scenario.hpp"

namespace {

using namespace tidegate;

struct Times {
  std::size_t tasks = 0;
  double graph = 0, plan = 0, simulate = 0;  ///< CPU seconds; simulate includes the prices
  double sum() const { return graph + plan + simulate; }
};

Times run(Scenario& scenario) {
  Times times;
  double before = bench::cpu_seconds();
  const auto lap = [&] {
    const double now = bench::cpu_seconds(), took = now - before;
    before = now;
    return took;
  };
  const LayerGraph graph = build_graph(scenario.workload);
  times.graph = lap();
  const Workload& w = scenario.workload;
  const Machine& machine = scenario.machine;
  const Layout layout({w.tensor_parallel, w.pipeline_parallel, w.interleave}, machine.nodes(),
                      scenario.ranks, false);
  const Setting setting{.graph = graph,
                        .machine = machine,
                        .zero = scenario.policy.zero,
                        .accumulation = w.accumulation,
                        .layout = layout};
  const Plan plan = build_plan(setting, scenario.policy, scenario.iterations);
  times.plan = lap();
  times.tasks = plan.size();
  simulate(plan, machine);
  times.simulate = lap();
  return times;
}

void row(const std::string& file, const std::string& name, const std::vector<Override>& overrides,
         int repeat) {
  Times best;
  for (int i = 0; i < repeat; ++i) {
    Scenario scenario = load_scenario(file, overrides);
    const Times times = run(scenario);
    if (i == 0 || times.sum() < best.sum()) best = times;
  }
  const double each = 1e9 / static_cast<double>(best.tasks);
  fmt::print("{:<34}{:>9}{:>8.3f}{:>8.3f}{:>8.3f}{:>8.3f}{:>9.0f}{:>9.0f}\n", name, best.tasks,
             best.graph, best.plan, best.simulate, best.sum(), each * best.plan,
             each * best.simulate);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int repeat = std::stoi(bench::option(argc, argv, "repeat", "3"));
    const std::string file = std::string(TIDEGATE_SOURCE_DIR) + "/bench/llama2_70b_ssdtrain.yaml";
    fmt::print("{:<34}{:>9}{:>8}{:>8}{:>8}{:>8}{:>9}{:>9}\n", "CPU seconds", "tasks", "graph",
               "plan", "sim", "sum", "plan ns", "sim ns");
    const auto rows = [&](const std::string& ways, const std::vector<Override>& all) {
      for (const int layers : {10, 20, 40, 80}) {
        std::vector<Override> mine(all);
        mine.emplace_back("workload.network.layers", std::to_string(layers));
        row(file, fmt::format("{}, {} layers", ways, layers), mine, repeat);
      }
      for (const int micro_batches : {2, 4, 8}) {
        std::vector<Override> mine(all);
        mine.emplace_back("workload.accumulation", std::to_string(micro_batches));
        row(file, fmt::format("{}, {} micro-batches", ways, micro_batches), mine, repeat);
      }
    };
    rows("ssdtrain", {});
    rows("ssdtrain tp8",
         {{"workload.tensor_parallel", "8"}, {"policy.activations.threshold", "1048576"}});
    rows("keep tp8", {{"workload.tensor_parallel", "8"}, {"policy.activations", "keep"}});
    rows("keep pp8", {{"workload.pipeline_parallel", "8"}, {"policy.activations", "keep"}});
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}
