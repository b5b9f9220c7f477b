#include <algorithm>

#include "sim/engine/sharing.hpp"

// The bursts of resources that tire.
namespace tidegate {

bool Sharing::is_tired(std::uint32_t resource) const {
  for (const Burst& burst : bursts_) {
    if (burst.resource == resource) return burst.left == 0;
  }
  return false;
}

// Brings the bursts up to now; one that is spent or refilled changes the cost of its resource.
void Sharing::drain(Instant now) {
  for (Burst& burst : bursts_) {
    const bool was_tired = burst.left == 0;
    const double moved = burst.pace * static_cast<double>(now - burst.since);
    burst.left = burst.spent_at <= now ? 0 : std::clamp(burst.left + moved, 0.0, burst.full);
    burst.since = now;
    if (was_tired == (burst.left == 0)) continue;
    price_use(burst.resource);
    change(burst.resource);
  }
}

// Side-1 work uses a burst up; without side-1 work it refills.
void Sharing::set_paces(Instant now) {
  for (Burst& burst : bursts_) {
    const std::uint32_t side_1 = 2 * burst.resource + 1;
    burst.pace = uses_[side_1].flows > 0 ? 0 : burst.recovery;
    for (std::size_t w = 0; w < words_used_; ++w) {
      each_bit(users_[burst.resource * words_ + w], w, [&](std::uint32_t slot) {
        const Flows& flows = flows_[slot];
        for (std::uint32_t i = flows.first_share; i < flows.last_share; ++i) {
          if (shares_[i].use != side_1) continue;
          burst.pace -= flows.count * shares_[i].fraction * slots_[slot].speed;
        }
      });
    }
    if (burst.left == 0 && burst.pace < 0) burst.pace = 0;
    const double ticks = burst.pace < 0 ? burst.left / -burst.pace : 4e18;
    burst.spent_at = ticks < 4e18 ? now + static_cast<Instant>(ticks) + 1 : never;
  }
}

}  // namespace tidegate
