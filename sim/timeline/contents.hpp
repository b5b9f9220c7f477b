#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"

/// What a plan's tasks mean, followed through a timeline: where every content was, and what it was
/// made from.
namespace tidegate {

/// The start or the end of a task that ran.
struct TaskMoment {
  TaskId task{};
  bool is_end = false;
  bool operator==(const TaskMoment&) const = default;
};
/// All of them in an order in which they can be repeated one after another: by time, of an instant
/// the ends of what began earlier first, then the others in the order of the plan, each with its
/// end if it takes no time.
std::vector<TaskMoment> moments(const Plan& plan, const Timeline& timeline);

struct ContentTrace {
  /// One sentence for each deed that does not find what it reads, finds a copy of what has been
  /// made anew elsewhere, sees it change while it reads, or writes into a buffer that is not
  /// allocated.
  std::vector<std::string> faults;
  /// By content: the last value, as a number that stands for all that it was computed from. Equal
  /// numbers of two plans: the same arithmetic on the same data. 0: never written.
  std::vector<std::uint64_t> values;
};
/// Moves and copies keep the number, so that a plan with offloading has to end with the numbers of
/// the plan without. What the attention core makes when it runs again by itself, and a storage that
/// several operators save apart, have numbers of their own. The plan carries its meaning.
ContentTrace trace_contents(const Plan& plan, const Timeline& timeline);

}  // namespace tidegate
