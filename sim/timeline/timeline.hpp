#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/base/units.hpp"
#include "sim/plan/plan.hpp"

namespace tidegate {

/// What happened when, whoever ran the plan.
///
/// `start` is the moment when everything a task waits for was there; `end` when its work was done.
/// Laws (tests/sim/timeline_test.cpp): end >= start >= every predecessor's end; on a lane starts
/// never decrease and at most `width` tasks run; tokens and locks are never oversubscribed; the
/// highest end is at least the critical path and at least each resource's work.
struct Timeline {
  struct PoolUse {
    std::int64_t peak = 0;
    Instant peak_at = 0;
    std::optional<TaskId> peak_task;   ///< whose allocation reached the peak
    std::optional<TaskId> first_over;  ///< whose allocation first exceeded the capacity
  };

  std::vector<Instant> start, end;    ///< by task
  std::vector<PoolUse> pools;         ///< by pool
  std::vector<std::uint8_t> choices;  ///< by choice: 1 yes, 0 no or never taken
  Instant makespan = 0;
};

/// Whether a condition held when it was asked for. The final outcomes tell: a choice is taken once,
/// and whoever asks before that is told no, which a sound plan (sim/plan/check.hpp) lets only those
/// do whose asking makes the outcome no: the watched task at its end (unfinished) or at its start
/// (unstarted), and those that wait for it.
inline bool holds(When when, const Timeline& timeline) { return when.holds(timeline.choices); }
/// A skipped task has start and end, equal: when it passed.
inline bool is_skipped(const Plan& plan, TaskId task, const Timeline& timeline) {
  return !holds(plan.task(task).when, timeline);
}

}  // namespace tidegate
