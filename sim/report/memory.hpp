#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/report/period.hpp"
#include "sim/timeline/timeline.hpp"

/// Who holds how many bytes of each pool, and when: the plan's allocations and frees played over a
/// timeline in the order of moments.hpp.
namespace tidegate {

/// Bytes of one pool at one moment, by owner.
struct Holding {
  std::int64_t bytes = 0;
  Instant at = 0;
  std::optional<TaskId> task;             ///< whose allocation led here
  std::vector<std::int64_t> owner_bytes;  ///< by OwnerId
};

/// Start-up is what comes before the first task of a phase: loading and setting up. Training begins
/// with what is held then.
struct PoolHistory {
  Holding startup, training;  ///< the first highest of each
  const Holding& peak() const { return startup.bytes >= training.bytes ? startup : training; }
  std::optional<Holding> first_over;  ///< the first above the capacity
  std::int64_t steady_peak = 0;       ///< highest during the steady period
};

std::vector<PoolHistory> memory_of(const Plan& plan, const Timeline& timeline,
                                   const Steady& steady);

/// Calls `seen` after every allocation and free with the moment's time, its task, the buffer and
/// +bytes or -bytes.
using MemoryChange = std::function<void(Instant, TaskId, const Buffer&, std::int64_t)>;
void play_memory(const Plan& plan, const Timeline& timeline, const MemoryChange& seen);

}  // namespace tidegate
