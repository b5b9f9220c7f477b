#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/base/units.hpp"
#include "models/demand.hpp"
#include "sim/plan/plan.hpp"
#include "sim/report/period.hpp"
#include "sim/timeline/timeline.hpp"

/// Which tasks a period's length is made of, and which chain of tasks no schedule can shorten.
///
/// The path is walked backwards from the period's last task. What made a task start when it did is
///   1. a predecessor in the plan that ended at that instant, else
///   2. the earlier task of its lane that started at that instant (lanes start in order), and so on
///      from there, else
///   3. a task of its lane, or one that gave back a token or a lock that it takes, that ended at
///      that instant, else
///   4. of its predecessors and the earlier task of its lane the one that ended last; the time
///      between is a wait that no task explains.
/// A task's own time is blamed on the resource of which it takes the largest fraction, of equal
/// ones on that with the most work in the whole plan (a port that two GPUs share, not the link of
/// one); where that was less than half full while the task took longer than alone, on the resource
/// of the task that was fullest (a drive that eight GPUs read at once, not the link of each). Its
/// latency (and a task that uses nothing) is blamed on latency.
namespace tidegate {

enum class Blame { resource, latency, wait };

struct PathSegment {
  Instant from = 0, to = 0;
  Blame blame = Blame::wait;
  ResourceId resource{};       ///< when blame is resource
  std::optional<TaskId> task;  ///< unless blame is wait

  Seconds time() const { return to_seconds(to - from); }
};

/// The segments of the period, latest first; they tile it.
std::vector<PathSegment> critical_path(const Plan& plan, const Timeline& timeline,
                                       std::span<const Demand> demands, const Steady& steady);

/// Seconds per iteration by which the longest chain of dependences grows:
///
///   chain(t)   = latency + alone (0 if skipped) + max over predecessors p of chain(p)
///   chain(i)   = max of chain over the tasks that mark iteration i (all its tasks without marks)
///   growth     = (chain(last of the period) - chain(before the period)) / iterations
///
/// The tasks are those that ran with the timeline's choices; other choices may allow other bounds.
/// Order of lanes, locks and tokens left out, every resource free: repeated for ever, no schedule
/// is faster than that. In a run of few iterations the growth may exceed what a schedule that fell
/// behind before the period needs to catch up; a reader of bounds takes the smaller of the two.
Seconds chain_growth(const Plan& plan, const Timeline& timeline, std::span<const Demand> demands,
                     const Steady& steady);

}  // namespace tidegate
