#include "sim/run/tiring.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/report/period.hpp"

namespace tidegate {
namespace {

struct Writes {
  Instant from = 0, to = 0;
  double work = 0;  // ticks at full rate
};

double overlap(const Writes& w, Instant from, Instant to) {
  return static_cast<double>(std::max<Instant>(0, std::min(w.to, to) - std::max(w.from, from)));
}

// In the order in which they begin.
std::vector<Writes> writes_of(const SimulatedPlan& run, std::size_t resource) {
  std::vector<Writes> writes;
  for (std::uint32_t t = 0; t < run.plan.size(); ++t) {
    const Demand& demand = run.demands[index(run.plan.tasks[t].work)];
    for (const Share& share : demand.used()) {
      if (index(share.resource) != resource || share.side != 1) continue;
      if (is_skipped(run.plan, TaskId{t}, run.timeline)) continue;
      const Instant from = run.timeline.start[t] + to_ticks(demand.latency);
      writes.push_back({from, std::max(from + 1, run.timeline.end[t]),
                        share.fraction * demand.alone.value() * ticks_per_second});
    }
  }
  std::ranges::sort(writes, {}, &Writes::from);
  return writes;
}

// By how much the cache is fuller after the iteration, in ticks of writing at full rate.
double filled_in(const std::vector<Writes>& writes, const Iteration& i, double recovery) {
  double work = 0, busy = 0;
  Instant seen = i.from;
  for (const Writes& w : writes) {
    const double within = overlap(w, i.from, i.to);
    if (within <= 0) continue;
    work += w.work * within / static_cast<double>(w.to - w.from);
    busy += overlap(w, std::max(seen, i.from), i.to);
    seen = std::max(seen, w.to);
  }
  return work - recovery * (static_cast<double>(i.to - i.from) - busy);
}

std::int64_t iterations_until_tired(const SimulatedPlan& run, const Resource& resource,
                                    const std::vector<Iteration>& iterations,
                                    const std::vector<Writes>& writes) {
  const double full = resource.burst.value() * ticks_per_second;
  double held = 0;
  std::vector<double> steps;
  for (const Iteration& i : iterations) {
    steps.push_back(filled_in(writes, i, resource.recovery));
    held = std::max(0.0, held + steps.back());
    if (held >= full) return static_cast<std::int64_t>(steps.size()) + 3;
  }
  const std::size_t last = std::min<std::size_t>(2, steps.size());
  double step = 0;
  for (std::size_t i = steps.size() - last; i < steps.size(); ++i)
    step += steps[i] / static_cast<double>(last);
  // What rounding leaves of nothing fills no cache.
  if (step <= full * 1e-9) return 0;
  return run.plan.iterations + static_cast<std::int64_t>(std::ceil((full - held) / step)) + 3;
}

}  // namespace

std::int64_t iterations_until_tired(const SimulatedPlan& run) {
  std::int64_t most = 0;
  std::vector<Iteration> iterations;
  for (std::size_t r = 0; r < run.resources.size(); ++r) {
    if (run.resources[r].burst <= Seconds(0)) continue;
    const std::vector<Writes> writes = writes_of(run, r);
    if (writes.empty()) continue;
    if (iterations.empty()) iterations = iterations_of(run.plan, run.timeline);
    most = std::max(most, iterations_until_tired(run, run.resources[r], iterations, writes));
  }
  return most;
}

}  // namespace tidegate
