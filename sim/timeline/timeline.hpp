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

  std::vector<Instant> start, end;  ///< by task
  std::vector<PoolUse> pools;       ///< by pool
  Instant makespan = 0;
};

}  // namespace tidegate
