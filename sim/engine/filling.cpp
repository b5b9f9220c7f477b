#include <algorithm>
#include <array>
#include <limits>

#include "sim/engine/sharing.hpp"

// Progressive filling of one component.
namespace tidegate {
namespace {

// After this loss of magnitude a running difference is summed afresh.
constexpr double cancellation = 1.0 / 1024;
constexpr double infinity = std::numeric_limits<double>::infinity();

std::size_t whole_lanes(std::size_t count) { return (count + 3) / 4 * 4; }

// The least of values[0, count), count a multiple of 4. Four lanes, because each waits for its
// last.
double least(const double* values, std::size_t count) {
  std::array<double, 4> lanes = {infinity, infinity, infinity, infinity};
  for (std::size_t i = 0; i < count; i += 4) {
    for (std::size_t j = 0; j < 4; ++j) lanes[j] = std::min(lanes[j], values[i + j]);
  }
  return std::min(std::min(lanes[0], lanes[1]), std::min(lanes[2], lanes[3]));
}

}  // namespace

// Nobody has stopped: all the room is there.
void Sharing::empty_places(std::size_t count, const Part* __restrict open, double* __restrict worn,
                           double* __restrict last_sum, double* __restrict room) {
  for (std::size_t k = 0; k < count; ++k) {
    last_sum[k] = open[k].sum;
    worn[k] = open[k].sum * cancellation;
    room[k] = 1;
  }
}

// Takes the parts of those that stopped at `level` out of the room, and finds at which level each
// place is full if all that are open there go on: -1 if its sum is worn. No branches and no
// aliases, so that the compiler does several places at once.
void Sharing::full_levels(double level, std::size_t count, const Part* __restrict open,
                          const double* __restrict worn, double* __restrict last_sum,
                          double* __restrict room, double* __restrict full_at) {
  count &= ~std::size_t{3};
  for (std::size_t k = 0; k < count; ++k) {
    const double sum = open[k].sum;
    const double left = room[k] - level * (last_sum[k] - sum);
    last_sum[k] = sum;
    room[k] = left;
    const double full = std::max(left, 0.0) / sum;
    const double known = sum < worn[k] ? -1.0 : full;
    full_at[k] = open[k].terms > 0 ? known : infinity;
  }
}

void Sharing::fill(Component& component, Instant now) {
  open_filling(component);
  double level = 0;
  for (Tightest full = tightest(0); full.level < infinity; full = tightest(level)) {
    level = std::max(level, full.level);  // rounding must not lower it
    if (lowest_cap_ <= level) {
      stop_capped(level, now);
    } else if (!stop_users({full.place, level}, now)) {
      return;
    }
  }
  stop_rest(now);
}

inline void Sharing::open_resource(std::uint32_t resource) {
  Pull& pull = pull_[resource];
  if (pull.age >= oldest_pull || pull.part.sum < pull.highest * cancellation) {
    pull.part.sum = pull.highest = pull_sum(resource, every_slot_);
    pull.age = 0;
  }
  const std::size_t k = fill_.count++;
  fill_.open[k] = pull.part;
  fill_.resource[k] = resource;
  place_[resource] = &fill_.open[k];
}

// Opens the users of resources that are contended or have just ceased to be. All users of a
// contended resource are open then, so that its sums over users are those over open ones.
void Sharing::open_filling(Component& component) {
  for (std::size_t w = 0; w < words_used_; ++w) open_[w] = 0;
  fill_.count = 0;
  const std::uint32_t end = component.first + component.count;
  component.count = 0;
  for (std::uint32_t i = component.first; i < end; ++i) {
    const std::uint32_t r = contended_[i];
    for (std::size_t w = 0; w < words_used_; ++w) open_[w] |= users_[r * words_ + w];
    if (is_contended_[r]) {
      contended_[component.first + component.count++] = r;
      open_resource(r);
    } else {
      place_[r] = &fill_.open.back();
    }
  }
  const std::size_t lanes = whole_lanes(fill_.count);
  for (std::size_t k = fill_.count; k < lanes; ++k) fill_.open[k] = {};
  empty_places(lanes, fill_.open.data(), fill_.worn.data(), fill_.last_sum.data(),
               fill_.room.data());
  lowest_cap_ = 1 / highest_pull_;
}

double Sharing::pull_sum(std::uint32_t resource, std::span<const std::uint64_t> among) const {
  double sum = 0;
  for (std::size_t w = 0; w < words_used_; ++w) {
    each_bit(users_[resource * words_ + w] & among[w], w, [&](std::uint32_t slot) {
      for (const Term& term : terms(slots_[slot])) {
        if (term.resource == resource) sum += term.part.sum;
      }
    });
  }
  return sum;
}

// The resource that is full at the lowest level if all its open users go on. Those that stopped
// since the last call did so at `level`.
Sharing::Tightest Sharing::tightest(double level) {
  const std::size_t count = whole_lanes(fill_.count);
  full_levels(level, count, fill_.open.data(), fill_.worn.data(), fill_.last_sum.data(),
              fill_.room.data(), fill_.full_at.data());
  const double* const full_at = fill_.full_at.data();
  double lowest = least(full_at, count);
  if (lowest < 0) {
    sum_worn_afresh();
    lowest = least(full_at, count);
  }
  std::size_t place = 0;
  if (lowest < infinity) {
    while (full_at[place] != lowest) ++place;
  }
  return {place, lowest};
}

void Sharing::sum_worn_afresh() {
  for (std::size_t k = 0; k < fill_.count; ++k) {
    if (fill_.full_at[k] >= 0) continue;
    const double sum = pull_sum(fill_.resource[k], open_);
    fill_.open[k].sum = fill_.last_sum[k] = sum;
    fill_.worn[k] = sum * cancellation;
    fill_.full_at[k] = std::max(fill_.room[k], 0.0) / sum;
  }
}

// A speed that stays leaves the clock unread and the end where it was, if the marks are the same
// too.
inline void Sharing::run_at(std::uint32_t slot, double speed, Instant now) {
  Slot& s = slots_[slot];
  if (speed == s.speed && !flows_[slot].is_touched) return;
  s.served += s.speed * static_cast<double>(now - s.since);
  s.since = now;
  s.speed = speed;
  due_[slot] = now + ticks_until(s.first_mark - s.served, speed);
}

// Returns whether classes are left open; if none are, nobody needs to know what they took.
bool Sharing::stop_users(const Tightest& full, Instant now) {
  const std::uint64_t* const users = &users_[fill_.resource[full.place] * words_];
  std::uint64_t left = 0;
  for (std::size_t w = 0; w < words_used_; ++w) left |= open_[w] & ~users[w];
  const Leave leave{place_.data()};
  for (std::size_t w = 0; w < words_used_; ++w) {
    const std::uint64_t stopped = open_[w] & users[w];
    open_[w] &= ~stopped;
    each_bit(stopped, w, [&](std::uint32_t i) {
      const Slot& slot = slots_[i];
      if (left != 0) leave(slot);
      run_at(i, std::min(1.0, slot.pull * full.level), now);
    });
  }
  return left != 0;
}

// Those that reach speed 1 below the level took less than tightest() would reckon.
void Sharing::stop_capped(double level, Instant now) {
  const Leave leave{place_.data()};
  lowest_cap_ = infinity;
  for (std::size_t w = 0; w < words_used_; ++w) {
    each_bit(open_[w], w, [&](std::uint32_t i) {
      const Slot& slot = slots_[i];
      const double cap = 1 / slot.pull;
      if (cap > level) {
        lowest_cap_ = std::min(lowest_cap_, cap);
        return;
      }
      open_[w] &= ~(std::uint64_t{1} << i % 64);
      leave(slot);
      for (const Term& term : terms(slot)) {
        const auto k = place_[term.resource] - fill_.open.data();
        fill_.last_sum[static_cast<std::size_t>(k)] -= term.part.sum;
        fill_.room[static_cast<std::size_t>(k)] -= term.part.sum * cap;
      }
      run_at(i, 1, now);
    });
  }
}

void Sharing::stop_rest(Instant now) {
  for (std::size_t w = 0; w < words_used_; ++w) {
    each_bit(open_[w], w, [&](std::uint32_t i) { run_at(i, 1, now); });
  }
}

void Sharing::run_touched(Instant now) {
  for (const std::uint32_t slot : touched_) {
    // Some were not filled: new and unhindered, or nothing changed but the marks.
    const double speed = slots_[slot].speed;
    if (flows_[slot].count > 0) run_at(slot, speed > 0 ? speed : 1, now);
    flows_[slot].is_touched = false;
  }
  touched_.clear();
}

}  // namespace tidegate
