#include "sim/report/period.hpp"

#include <algorithm>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

// A moment that all ranks have passed: the end of a phase.
struct Boundary {
  Phase phase = Phase::other;
  Instant at = 0;
  TaskId last{};
};

// boundaries[i][k]: end of the k-th phase of iteration i over all ranks.
std::vector<std::vector<Boundary>> boundaries_of(const Plan& plan, const Timeline& timeline,
                                                 std::size_t count) {
  std::vector<std::vector<Boundary>> boundaries(count);
  const auto ranks = static_cast<std::size_t>(std::max(1, plan.ranks));
  std::vector<std::size_t> seen(count * ranks, 0);
  for (const Mark& mark : plan.marks) {
    ensure(mark.iteration < count && mark.rank < ranks,
           "a mark names an iteration and a rank of its plan");
    auto& row = boundaries[mark.iteration];
    const std::size_t k = seen[mark.iteration * ranks + mark.rank]++;
    const Instant end = timeline.end[index(mark.task)];
    if (k == row.size()) row.push_back({mark.phase, end, mark.task});
    ensure(row[k].phase == mark.phase, "ranks mark the same phases in the same order");
    if (end > row[k].at) row[k] = {mark.phase, end, mark.task};
  }
  return boundaries;
}

// One boundary per iteration, for iterations that say nothing: the last end of their tasks.
std::vector<std::optional<Boundary>> last_ends(const Plan& plan, const Timeline& timeline,
                                               std::size_t count) {
  std::vector<std::optional<Boundary>> last(count);
  for (std::size_t t = 0; t < plan.size(); ++t) {
    const std::size_t i = plan.tasks[t].iteration;
    ensure(i < count, "a task names an iteration of its plan");
    const auto id = static_cast<TaskId>(t);
    if (!last[i] || timeline.end[t] > last[i]->at)
      last[i] = Boundary{Phase::other, timeline.end[t], id};
  }
  return last;
}

}  // namespace

std::vector<Iteration> iterations_of(const Plan& plan, const Timeline& timeline) {
  const auto count = static_cast<std::size_t>(std::max(1, plan.iterations));
  auto boundaries = boundaries_of(plan, timeline, count);
  const auto last = last_ends(plan, timeline, count);
  std::vector<Iteration> iterations(count);
  Instant now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (boundaries[i].empty() && last[i]) boundaries[i].push_back(*last[i]);
    iterations[i].from = now;
    for (const Boundary& b : boundaries[i]) {
      if (b.at < now) continue;  // ended before the phase before it: it took no time of its own
      iterations[i].phases[static_cast<std::size_t>(b.phase)] += to_seconds(b.at - now);
      iterations[i].last = b.last;
      now = b.at;
    }
    iterations[i].to = now;
  }
  return iterations;
}

Steady steady_period(const std::vector<Iteration>& iterations) {
  ensure(!iterations.empty(), "a plan has an iteration");
  const std::size_t count = iterations.size() >= 3 ? 2 : 1;
  const std::size_t first = iterations.size() - count;
  return {first, count, iterations[first].from, iterations.back().to, iterations.back().last};
}

}  // namespace tidegate
