#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"

/// Bytes in each memory pool while a plan runs. Filling a pool beyond its capacity is recorded,
/// never refused.
namespace tidegate {

class Ledger {
 public:
  explicit Ledger(const Plan& plan);

  void allocate(BufferId buffer, TaskId task, Instant now) {
    const Buffer& b = buffers_[index(buffer)];
    Use& use = pools_[index(b.pool)];
    use.level += b.bytes;
    if (use.level <= use.seen.peak) return;
    use.seen.peak = use.level;
    use.seen.peak_at = now;
    use.seen.peak_task = task;
    if (use.level > use.capacity && !use.seen.first_over) use.seen.first_over = task;
  }
  void free(BufferId buffer) {
    const Buffer& b = buffers_[index(buffer)];
    pools_[index(b.pool)].level -= b.bytes;
  }
  std::int64_t level(PoolId pool) const { return pools_[index(pool)].level; }
  std::vector<Timeline::PoolUse> uses() const;

 private:
  struct Use {
    std::int64_t level = 0, capacity = 0;
    Timeline::PoolUse seen;
  };
  const std::vector<Buffer>& buffers_;
  std::vector<Use> pools_;
};

}  // namespace tidegate
