#include <algorithm>
#include <bit>
#include <limits>

#include "sim/engine/sharing.hpp"

// Progressive filling of the classes connected with a change, and the bursts of resources that tire.
namespace tidegate {
namespace {

// After this loss of magnitude a running difference is summed afresh.
constexpr double cancellation = 1.0 / 1024;

}  // namespace

// From the listed resources to their users, on to the contended resources of those, and so forth.
// open_ gets the classes reached, contended_ the resources that may stop them.
void Sharing::gather() {
  std::ranges::fill(open_, 0);
  std::size_t listed = 0;
  for (std::size_t i = 0; i < listed_count_; ++i) listed += is_contended_[listed_[i]];
  unlisted_count_ = contended_count_ - listed;
  for (std::size_t i = 0; i < listed_count_; ++i) {
    for (std::size_t w = 0; w < words_; ++w) {
      std::uint64_t fresh = users_[listed_[i] * words_ + w] & ~open_[w];
      open_[w] |= fresh;
      for (; fresh != 0 && unlisted_count_ > 0; fresh &= fresh - 1) {
        list_contended_of(static_cast<std::uint32_t>(64 * w) +
                          static_cast<std::uint32_t>(std::countr_zero(fresh)));
      }
    }
  }
  contended_.clear();
  for (std::size_t i = 0; i < listed_count_; ++i) {
    const std::uint32_t r = listed_[i];
    is_unlisted_[r] = is_contended_[r];
    if (is_contended_[r]) contended_.push_back(r);
  }
  listed_count_ = 0;
}

// Without branches: whether a resource is new is a coin toss.
void Sharing::list_contended_of(std::uint32_t slot) {
  for (const Term& term : terms(flows_[class_at_[slot]])) {
    const std::uint32_t r = term.resource;
    const std::uint8_t is_new = is_unlisted_[r];
    listed_[listed_count_] = r;
    listed_count_ += is_new;
    unlisted_count_ -= is_new;
    is_unlisted_[r] = 0;
  }
}

void Sharing::fill(Instant now) {
  open_filling();
  double level = 0;
  for (Tightest full = tightest(0); !contended_.empty(); full = tightest(level)) {
    level = std::max(level, full.level);  // rounding must not lower it
    if (lowest_cap_ <= level) {
      stop_capped(level, now);
    } else if (!stop_users({full.resource, level}, now)) {
      return;
    }
  }
  stop_all(now);
}

// All users of a contended resource are open now, so that its sums over users are those over open ones.
void Sharing::open_filling() {
  lowest_cap_ = 1 / highest_pull_;
  for (const std::uint32_t r : contended_) {
    Pull& pull = pull_[r];
    if (pull.age >= oldest_pull || pull.sum < pull.highest * cancellation) {
      pull.sum = pull.highest = pull_sum(r, every_slot_);
      pull.age = 0;
    }
    fill_[r] = {1, pull.sum, pull.sum, pull.sum};
  }
}

double Sharing::pull_sum(std::uint32_t resource, std::span<const std::uint64_t> among) const {
  double sum = 0;
  for (std::size_t w = 0; w < words_; ++w) {
    each_bit(users_[resource * words_ + w] & among[w], w, [&](std::uint32_t slot) {
      for (const Term& term : terms(flows_[class_at_[slot]])) {
        if (term.resource == resource) sum += term.pull;
      }
    });
  }
  return sum;
}

bool Sharing::has_open(std::uint32_t resource) const {
  const std::uint64_t* const users = &users_[resource * words_];
  std::size_t w = 0;
  while (w < words_ && (users[w] & open_[w]) == 0) ++w;
  return w < words_;
}

// The resource that is full at the lowest level if all its open users go on; forgets resources
// without open users. Those that stopped since the last call did so at `level`. Positive doubles are compared as integers, which needs no branches.
Sharing::Tightest Sharing::tightest(double level) {
  constexpr auto infinity = std::bit_cast<std::int64_t>(std::numeric_limits<double>::infinity());
  std::int64_t lowest = infinity;
  std::int64_t where = 0;
  std::size_t kept = 0;
  for (const std::uint32_t r : contended_) {
    Fill& f = fill_[r];
    const bool is_open = has_open(r);
    contended_[kept] = r;
    kept += is_open;
    f.room -= level * (f.last_sum - f.pull_sum);
    if (is_open && f.pull_sum < f.first_sum * cancellation) f.pull_sum = f.first_sum = pull_sum(r, open_);
    f.last_sum = f.pull_sum;
    const auto full_at = std::bit_cast<std::int64_t>(std::max(f.room, 0.0) / f.pull_sum);
    const std::int64_t is_lower = -static_cast<std::int64_t>((full_at < lowest) & is_open);
    lowest ^= (lowest ^ full_at) & is_lower;
    where ^= (where ^ r) & is_lower;
  }
  contended_.resize(kept);
  return {static_cast<std::uint32_t>(where), std::bit_cast<double>(lowest)};
}

void Sharing::run_at(Flow& flow, double speed, Instant now) {
  if (speed == flow.speed && !flow.touched) return;
  flow.served += flow.speed * static_cast<double>(now - flow.since);
  flow.since = now;
  flow.speed = speed;
  flow.touched = false;
  due_[flow.slot] = now + ticks_until(flow.first_mark - flow.served, speed);
}

// Takes a class that stops out of those that go on; tightest() takes its part out of the room.
inline void Sharing::leave(const Flow& flow) {
  for (const Term& term : terms(flow)) fill_[term.resource].pull_sum -= term.pull;
}

// The same for a class that stops below the level, at speed 1.
void Sharing::leave_at_full_speed(const Flow& flow) {
  leave(flow);
  for (const Term& term : terms(flow)) {
    Fill& f = fill_[term.resource];
    f.room -= term.pull / flow.pull;
    f.last_sum -= term.pull;
  }
}

// Returns whether classes are left open; if none are, nobody needs to know what they took.
bool Sharing::stop_users(const Tightest& full, Instant now) {
  const std::uint64_t* const users = &users_[full.resource * words_];
  std::uint64_t left = 0;
  for (std::size_t w = 0; w < words_; ++w) left |= open_[w] & ~users[w];
  for (std::size_t w = 0; w < words_; ++w) {
    const std::uint64_t stopped = users[w] & open_[w];
    open_[w] &= ~stopped;
    each_bit(stopped, w, [&](std::uint32_t slot) {
      Flow& flow = flows_[class_at_[slot]];
      if (left != 0) leave(flow);
      run_at(flow, std::min(1.0, flow.pull * full.level), now);
    });
  }
  return left != 0;
}

void Sharing::stop_capped(double level, Instant now) {
  double highest_pull = 0;
  for (std::size_t w = 0; w < words_; ++w) {
    each_bit(open_[w], w, [&](std::uint32_t slot) {
      Flow& flow = flows_[class_at_[slot]];
      if (1 / flow.pull > level) {
        highest_pull = std::max(highest_pull, flow.pull);
        return;
      }
      open_[w] &= ~(std::uint64_t{1} << slot % 64);
      leave_at_full_speed(flow);
      run_at(flow, 1, now);
    });
  }
  lowest_cap_ = 1 / highest_pull;
}

void Sharing::stop_all(Instant now) {
  for (std::size_t w = 0; w < words_; ++w) {
    each_bit(open_[w], w, [&](std::uint32_t slot) { run_at(flows_[class_at_[slot]], 1, now); });
  }
}

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
    burst.pace = flows_on_[side_1] > 0 ? 0 : burst.recovery;
    for (std::size_t w = 0; w < words_; ++w) {
      each_bit(users_[burst.resource * words_ + w], w, [&](std::uint32_t slot) {
        const Flow& flow = flows_[class_at_[slot]];
        for (const FlowShare& share : used(flow)) {
          if (share.use == side_1) burst.pace -= flow.count * share.fraction * flow.speed;
        }
      });
    }
    if (burst.left == 0 && burst.pace < 0) burst.pace = 0;
    const double ticks = burst.pace < 0 ? burst.left / -burst.pace : 4e18;
    burst.spent_at = ticks < 4e18 ? now + static_cast<Instant>(ticks) + 1 : never;
  }
}

}  // namespace tidegate
