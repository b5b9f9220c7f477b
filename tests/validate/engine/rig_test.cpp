// Plans of real policies on a paced rig: order, bytes, memory and faults.
#include <cstdio>
#include <filesystem>

#include "models/base/error.hpp"
#include "sim/report/period.hpp"
#include "sim/run/predict.hpp"
#include "tests/validate/engine/laws.hpp"
#include "validate/engine/rig.hpp"

using namespace tidegate;

namespace {

const char* const tiny = R"(
workload:
  network: {layers: 4, hidden: 256, heads: 4, ffn: 1024, vocabulary: 1024}
  sequence: 256
hardware: paced_rig
ranks: 1
iterations: 4
policy: {}
)";

std::string folder() { return std::filesystem::temp_directory_path().string(); }

Scenario scenario_of(const std::vector<Override>& changes) {
  yaml::Value root = yaml::load_text(tiny, "tiny.yaml");
  return read_scenario(root, "tiny", "tiny.yaml", changes);
}

Rig rig_of(const Scenario& scenario) {
  return {.machine = scenario.machine,
          .pace = Pace::paced,
          .folders = std::vector<std::string>(scenario.machine.paths().size(), folder())};
}

const std::vector<std::vector<Override>> policies = {
    {{"policy.activations", "keep"}},
    {{"policy.activations", "{name: recompute, mode: full}"}},
    {{"policy.zero", "{stage: 2}"}, {"policy.optimizer", "zero_offload"}},
    {{"policy.zero", "{stage: 3, param_persistence_threshold: 1000}"},
     {"policy.optimizer", "{name: zero_infinity, path: drive, sub_group_size: 400000}"}},
    {{"policy.zero", "{stage: 3, param_persistence_threshold: 1000}"},
     {"ranks", "2"},
     {"policy.optimizer", "{name: mlp_offload, paths: [drive, second], sub_group_size: 200000}"}},
    {{"policy.activations", "{name: ssdtrain, to: drive, threshold: 10000, profile_iteration: 1}"}},
};

}  // namespace

TEST_CASE("policies", "[rig]") {
  for (const auto& changes : policies) {
    Scenario scenario = scenario_of(changes);
    Prediction p = predict(scenario);
    const Execution e = run_on(rig_of(scenario), p.plan);
    check_laws(p.plan, e.timeline);
    const Seconds s = steady_period(iterations_of(p.plan, p.timeline)).time();
    const Seconds m = steady_period(iterations_of(p.plan, e.timeline)).time();
    double late = 0;
    for (auto l : e.lateness) late += static_cast<double>(l) / 1e12;
    std::printf("%-40s tasks %zu predicted %.1f ms measured %.1f ms  %+.2f %%; mean late %.0f us\n",
                changes.back().second.c_str(), p.plan.size(), s.value() * 500, m.value() * 500,
                100 * (m / s - 1), late / static_cast<double>(p.plan.size()) * 1e6);
    std::map<std::string, std::array<double, 3>> kinds;
    for (std::uint32_t t = 0; t < p.plan.size(); ++t) {
      auto& k = kinds[p.plan.names[index(p.plan.tasks[t].name)]];
      k[0] += static_cast<double>(p.timeline.end[t] - p.timeline.start[t]) * 1e-9;
      k[1] += static_cast<double>(e.timeline.end[t] - e.timeline.start[t]) * 1e-9;
      k[2] += static_cast<double>(e.lateness[t]) * 1e-9;
    }
    for (auto& [n, k] : kinds)
      if (k[0] > 1)
        std::printf("   %-30s %8.1f %8.1f ms  %+.1f %%  late %.1f\n", n.c_str(), k[0], k[1],
                    100 * (k[1] / k[0] - 1), k[2]);
    for (std::size_t i = 0; i < p.plan.pools.size(); ++i) {
      if (p.timeline.pools[i].peak != e.timeline.pools[i].peak)
        std::printf("   pool %s %ld %ld\n", p.plan.pools[i].name.c_str(), p.timeline.pools[i].peak,
                    e.timeline.pools[i].peak);
    }
  }
}
