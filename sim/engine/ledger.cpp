#include "sim/engine/ledger.hpp"

namespace tidegate {

Ledger::Ledger(const Plan& plan) : buffers_(plan.buffers) {
  for (const Pool& pool : plan.pools) {
    // A capacity beyond 8 EiB, infinity included, is none.
    const bool is_bounded = pool.capacity.value() < 9.2e18;
    pools_.push_back({0,
                      is_bounded ? static_cast<std::int64_t>(pool.capacity.value())
                                 : std::numeric_limits<std::int64_t>::max(),
                      {}});
  }
}

std::vector<Timeline::PoolUse> Ledger::uses() const {
  std::vector<Timeline::PoolUse> uses;
  for (const Use& use : pools_) uses.push_back(use.seen);
  return uses;
}

}  // namespace tidegate
