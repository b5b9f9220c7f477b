#include "validate/ablation.hpp"

#include <array>
#include <vector>

#include <fmt/core.h>

#include "models/base/units.hpp"
#include "sim/report/table.hpp"
#include "sim/run/predict.hpp"

namespace tidegate {
namespace {

struct Line {
  const char* name;
  std::vector<Override> overrides;
};

// Pinned memory stays equal: one path has all the buffers, two paths half each.
std::vector<Line> lines() {
  const Override one_path{"policy.optimizer.paths", "[nvme]"};
  const Override one_share{"policy.optimizer.assignment", "proportional"};
  const Override all_buffers{"policy.optimizer.buffer_count", "50"};
  const Override no_lock{"policy.optimizer.exclusive", "false"};
  const Override no_cache{"policy.optimizer.cache", "false"};
  const Override gradients{"policy.optimizer.delayed_gradients", "false"};
  const Override upload{"policy.optimizer.async_upload", "false"};
  return {{"one path, none of the four",
           {one_path, one_share, all_buffers, no_lock, no_cache, gradients, upload}},
          {"+ delayed gradient conversion", {one_path, one_share, all_buffers, no_lock, no_cache}},
          {"+ alternating order, cached sub-groups", {one_path, one_share, all_buffers, no_lock}},
          {"+ second path", {no_lock}},
          {"+ exclusive access: all four", {}}};
}

std::string phase(const Report& r, Phase p) {
  return to_text(r.phases[static_cast<std::size_t>(p)]);
}

}  // namespace

std::string ablation_text(const std::string& path) {
  Table table{.header = {"switched on", "iteration", "forward", "backward", "update", "speed-up"},
              .rows = {},
              .align = {}};
  double first = 0;
  for (const Line& line : lines()) {
    Scenario scenario = load_scenario(path, line.overrides);
    const Report r = predict(scenario).report;
    const double t = r.iteration_time.value();
    if (first == 0) first = t;
    table.rows.push_back({line.name, to_text(r.iteration_time), phase(r, Phase::forward),
                          phase(r, Phase::backward), phase(r, Phase::update),
                          fmt::format("{:.2f}x", first / t)});
  }
  return "Switch by switch, 70B (predicted)\n\n" + to_text(table);
}

}  // namespace tidegate
