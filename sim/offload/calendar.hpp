#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/base/units.hpp"

/// Bookings of transfers on shareable rates over time.
///
/// A calendar holds the free fraction of one rate, piecewise constant in time. A transfer crosses
/// one or more of them (a drive's write goes over the link as well) and moves, at each moment, at
///
///   rate = min over the legs of (free fraction * peak),  using rate / peak of each leg,
///
/// so the bytes moved are piecewise linear in time and no rate is ever booked beyond its peak.
namespace tidegate {

class Calendar {
 public:
  double free_at(Seconds time) const;      ///< right of `time`
  double free_before(Seconds time) const;  ///< left of `time`
  Seconds next_change(Seconds time) const;
  Seconds previous_change(Seconds time) const;
  /// Free fraction * time from the first of `times`, which ascend, up to each of them.
  std::vector<Seconds> free_up_to(const std::vector<Seconds>& times) const;
  /// Takes (or with a negative fraction gives back) part of the rate from `from` to `to`.
  void take(Seconds from, Seconds to, double fraction);

 private:
  struct Step {
    Seconds start = Seconds(-1e300);  // before all times
    double free = 1;
  };
  std::size_t split(Seconds at);
  std::size_t step_at(Seconds time) const;
  std::vector<Step> steps_ = std::vector<Step>(1);
};

struct Leg {
  Calendar* calendar = nullptr;
  BytesPerSecond peak;
};

struct Booking {
  struct Slot {
    Seconds from, to;
    BytesPerSecond rate;
  };
  std::vector<Slot> slots;  ///< in order of time
  Seconds begin() const { return slots.front().from; }
  Seconds end() const { return slots.back().to; }
};

/// The earliest way to move `bytes` from `earliest` on. Takes nothing yet.
Booking book_from(std::span<const Leg> legs, Seconds earliest, Bytes bytes);

/// The latest way to have moved `bytes` by `latest`; none when it would begin before `earliest`.
std::optional<Booking> book_until(std::span<const Leg> legs, Seconds latest, Bytes bytes,
                                  Seconds earliest);

/// Bytes that a path could still move from the first of `times` up to each of them, where within
/// each span between two the scarcest leg counts.
std::vector<Bytes> room_up_to(std::span<const Leg> legs, const std::vector<Seconds>& times);

void take(std::span<const Leg> legs, const Booking& booking);
void give_back(std::span<const Leg> legs, const Booking& booking);

}  // namespace tidegate
