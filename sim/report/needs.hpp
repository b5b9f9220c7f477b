#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/memory/caching_allocator.hpp"
#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"

namespace tidegate {

/// What decides whether a run fits into a pool: the same numbers as of memory_of and
/// allocator_histories, without who held what and when. For searches, which ask nothing else.
struct PoolNeed {
  std::int64_t peak = 0;      ///< PoolHistory::peak
  std::int64_t reserved = 0;  ///< of a GPU: AllocatorHistory::run.reserved
  std::int64_t refused = 0;   ///< of a GPU that ran out of memory: reserved and asked bytes then
  bool is_over = false;       ///< the peak exceeds the capacity
  std::int64_t bytes() const { return std::max({peak, reserved, refused}); }
  bool fits() const { return !is_over && refused == 0; }
};

/// By pool. GPUs whose requests are the same in size, stream and order are played once.
std::vector<PoolNeed> pool_needs(const Plan& plan, const Timeline& timeline,
                                 const AllocatorOptions& options);

}  // namespace tidegate
