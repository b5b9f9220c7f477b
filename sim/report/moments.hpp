#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"

/// Starts and ends of tasks in the order in which they take effect.
///
/// By time. At one instant, first the ends of tasks that started earlier, then the starts of that
/// instant in task order, each followed at once by its end when the task takes no time.
/// Predecessors have lower numbers, so an end comes before the starts that wait for it, and bytes
/// handed from one task to the next are never counted twice.
namespace tidegate {

class Moment {
 public:
  Moment(const Timeline& timeline, std::size_t task, bool is_end)
      : at_(is_end ? timeline.end[task] : timeline.start[task]),
        order_(static_cast<std::uint64_t>(task) << 1 | (is_end ? 1u : 0u)) {
    const bool is_earlier = is_end && timeline.start[task] < timeline.end[task];
    if (!is_earlier) order_ |= std::uint64_t{1} << 40;
  }
  Instant at() const { return at_; }
  TaskId task() const { return static_cast<TaskId>(order_ >> 1 & 0xffffffffu); }
  bool is_end() const { return (order_ & 1) != 0; }
  auto operator<=>(const Moment&) const = default;

 private:
  Instant at_;
  std::uint64_t order_;
};

/// The moments of the tasks for which `keep` says yes.
std::vector<Moment> moments(const Timeline& timeline, std::size_t tasks,
                            const std::function<bool(TaskId)>& keep);

}  // namespace tidegate
