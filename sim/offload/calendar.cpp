#include "sim/offload/calendar.hpp"

#include <algorithm>
#include <limits>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

constexpr Seconds forever = Seconds(std::numeric_limits<double>::infinity());

// Sums of fractions come back to 0 and 1 up to rounding; a residue would become a transfer at a
// billionth of the rate.
double snapped(double free) {
  constexpr double dust = 1e-9;
  if (free < dust) return 0;
  return free > 1 - dust ? 1 : free;
}

void book(std::span<const Leg> legs, const Booking& booking, double sign) {
  for (const Booking::Slot& slot : booking.slots)
    for (const Leg& leg : legs)
      leg.calendar->take(slot.from, slot.to, sign * (slot.rate / leg.peak));
}

}  // namespace

std::size_t Calendar::step_at(Seconds time) const {
  const auto after = std::ranges::upper_bound(steps_, time, {}, &Step::start);
  return static_cast<std::size_t>(after - steps_.begin()) - 1;
}

double Calendar::free_at(Seconds time) const { return steps_[step_at(time)].free; }

double Calendar::free_before(Seconds time) const {
  const std::size_t i = step_at(time);
  return steps_[i].start == time && i > 0 ? steps_[i - 1].free : steps_[i].free;
}

Seconds Calendar::next_change(Seconds time) const {
  const std::size_t i = step_at(time) + 1;
  return i < steps_.size() ? steps_[i].start : forever;
}

Seconds Calendar::previous_change(Seconds time) const {
  const std::size_t i = step_at(time);
  return steps_[i].start == time && i > 0 ? steps_[i - 1].start : steps_[i].start;
}

std::vector<Seconds> Calendar::free_up_to(const std::vector<Seconds>& times) const {
  std::vector<Seconds> all(1);
  all.reserve(times.size());
  std::size_t i = step_at(times.front());
  for (std::size_t k = 1; k < times.size(); ++k) {
    Seconds free = all.back();
    Seconds from = times[k - 1];
    while (i + 1 < steps_.size() && steps_[i + 1].start < times[k]) {
      free += (steps_[i + 1].start - from) * steps_[i].free;
      from = steps_[++i].start;
    }
    all.push_back(free + (times[k] - from) * steps_[i].free);
  }
  return all;
}

std::size_t Calendar::split(Seconds at) {
  const std::size_t i = step_at(at);
  if (steps_[i].start == at) return i;
  const Step right = {at, steps_[i].free};
  steps_.insert(steps_.begin() + static_cast<std::ptrdiff_t>(i) + 1, right);
  return i + 1;
}

void Calendar::take(Seconds from, Seconds to, double fraction) {
  if (!(from < to)) return;
  const std::size_t begin = split(from);
  const std::size_t end = split(to);
  for (std::size_t i = begin; i < end; ++i) {
    const double left = steps_[i].free - fraction;
    ensure(left > -1e-6 && left < 1 + 1e-6, "a rate is booked at most once");
    steps_[i].free = snapped(left);
  }
  // Neighbours that became equal are one step again.
  const auto first = steps_.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = steps_.begin() + static_cast<std::ptrdiff_t>(end) + 1;
  const auto same = [](const Step& a, const Step& b) { return a.free == b.free; };
  steps_.erase(std::unique(begin > 0 ? first - 1 : first, last, same), last);
}

Booking book_from(std::span<const Leg> legs, Seconds earliest, Bytes bytes) {
  Booking booking;
  Seconds time = earliest;
  while (true) {
    BytesPerSecond rate = BytesPerSecond(std::numeric_limits<double>::infinity());
    Seconds until = forever;
    for (const Leg& leg : legs) {
      rate = std::min(rate, leg.peak * leg.calendar->free_at(time));
      until = std::min(until, leg.calendar->next_change(time));
    }
    if (rate.value() > 0) {
      const Seconds needed = bytes / rate;
      const Seconds end = std::min(until, time + needed);
      booking.slots.push_back({time, end, rate});
      if (time + needed <= until) return booking;
      bytes = std::max(Bytes(), bytes - rate * (until - time));
    }
    ensure(until < forever, "a booked rate is free again in the end");
    time = until;
  }
}

std::optional<Booking> book_until(std::span<const Leg> legs, Seconds latest, Bytes bytes,
                                  Seconds earliest) {
  Booking booking;
  Seconds time = latest;
  while (time >= earliest) {
    BytesPerSecond rate = BytesPerSecond(std::numeric_limits<double>::infinity());
    Seconds from = -forever;
    for (const Leg& leg : legs) {
      rate = std::min(rate, leg.peak * leg.calendar->free_before(time));
      from = std::max(from, leg.calendar->previous_change(time));
    }
    if (rate.value() > 0) {
      const Seconds begin = std::max(from, time - bytes / rate);
      if (begin < earliest) return std::nullopt;
      booking.slots.push_back({begin, time, rate});
      if (time - bytes / rate >= from) {
        std::ranges::reverse(booking.slots);
        return booking;
      }
      bytes = std::max(Bytes(), bytes - rate * (time - from));
    }
    time = from;
  }
  return std::nullopt;
}

std::vector<Bytes> room_up_to(std::span<const Leg> legs, const std::vector<Seconds>& times) {
  std::vector<std::vector<Seconds>> free;
  for (const Leg& leg : legs) free.push_back(leg.calendar->free_up_to(times));
  std::vector<Bytes> room(1);
  room.reserve(times.size());
  for (std::size_t k = 1; k < times.size(); ++k) {
    Bytes least = Bytes(std::numeric_limits<double>::infinity());
    for (std::size_t l = 0; l < legs.size(); ++l)
      least = std::min(least, legs[l].peak * (free[l][k] - free[l][k - 1]));
    room.push_back(room.back() + least);
  }
  return room;
}

void take(std::span<const Leg> legs, const Booking& booking) { book(legs, booking, 1); }
void give_back(std::span<const Leg> legs, const Booking& booking) { book(legs, booking, -1); }

}  // namespace tidegate
