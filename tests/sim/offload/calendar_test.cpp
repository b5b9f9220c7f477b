#include "sim/offload/calendar.hpp"

#include <random>

#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::literals;

TEST_CASE("a transfer takes the first free time, in parts where it must", "[offload]") {
  Calendar link;
  const std::vector<Leg> legs = {{&link, 1_GBps}};
  // Taken 2 … 4 s. 3 GB from 1 s: 1 … 2 and 4 … 6 s.
  take(legs, book_from(legs, 2_s, 2_GB));
  const Booking b = book_from(legs, 1_s, 3_GB);
  REQUIRE(b.slots.size() == 2);
  CHECK(b.slots[0].to == 2_s);
  CHECK(b.slots[1].from == 4_s);
  CHECK(b.end() == 6_s);
}

TEST_CASE("a transfer with a deadline takes the last free time before it", "[offload]") {
  Calendar link;
  const std::vector<Leg> legs = {{&link, 1_GBps}};
  take(legs, book_from(legs, 2_s, 2_GB));
  // 2 GB by 5 s: 4 … 5 and 1 … 2 s.
  const auto b = book_until(legs, 5_s, 2_GB, 0_s);
  REQUIRE(b);
  CHECK(b->begin() == 1_s);
  CHECK(b->end() == 5_s);
  // 3 GB need 0 … 2 and 4 … 5 s: not after 0.5 s.
  CHECK(book_until(legs, 5_s, 3_GB, 0_s));
  CHECK_FALSE(book_until(legs, 5_s, 3_GB, 0.5_s));
}

TEST_CASE("a write to a drive takes its part of the link and leaves the rest", "[offload]") {
  Calendar link, drives;
  const std::vector<Leg> to_host = {{&link, 4_GBps}};
  const std::vector<Leg> to_storage = {{&link, 4_GBps}, {&drives, 1_GBps}};
  // 2 GB to the drives: 2 s at 1 GB/s. Meanwhile 3 GB/s are left to the host: 7.5 GB take
  // 2 s (6 GB) and 1.5/4 s.
  const Booking write = book_from(to_storage, 0_s, 2_GB);
  CHECK(write.end() == 2_s);
  take(to_storage, write);
  CHECK(book_from(to_host, 0_s, Bytes(7.5e9)).end().value() == Approx(2.375));
  // Given back, the link is whole again: 7.5/4 s.
  give_back(to_storage, write);
  CHECK(book_from(to_host, 0_s, Bytes(7.5e9)).end().value() == Approx(1.875));
}

TEST_CASE("random bookings move their bytes and never more than a rate allows", "[offload][law]") {
  std::mt19937_64 random(7);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1.0p-53; };
  for (int round = 0; round < 50; ++round) {
    Calendar link, drives;
    const BytesPerSecond link_rate = BytesPerSecond(1e9 * (1 + 9 * uniform()));
    const BytesPerSecond drive_rate = BytesPerSecond(1e9 * (0.5 + 5 * uniform()));
    const std::vector<Leg> host = {{&link, link_rate}};
    const std::vector<Leg> storage = {{&link, link_rate}, {&drives, drive_rate}};
    std::vector<std::pair<bool, Booking>> kept;
    std::vector<Seconds> changes;
    for (int i = 0; i < 40; ++i) {
      const bool to_drives = uniform() < 0.5;
      const auto& legs = to_drives ? storage : host;
      const Bytes bytes = Bytes(1e9 * uniform() + 1);
      const Seconds at = Seconds(30 * uniform());
      const auto late = book_until(legs, at, bytes, 0_s);
      const Booking b = uniform() < 0.5 && late ? *late : book_from(legs, at, bytes);
      Bytes moved;
      for (const Booking::Slot& s : b.slots) moved += s.rate * (s.to - s.from);
      CHECK(moved.value() == Approx(bytes.value()).epsilon(1e-6));
      take(legs, b);
      if (uniform() < 0.25) {
        give_back(legs, b);
        continue;
      }
      for (const Booking::Slot& s : b.slots) changes.push_back(s.from);
      kept.emplace_back(to_drives, b);
    }
    for (const Seconds t : changes) {
      BytesPerSecond on_link, on_drives;
      for (const auto& [to_drives, b] : kept) {
        for (const Booking::Slot& s : b.slots) {
          if (t < s.from || t >= s.to) continue;
          on_link += s.rate;
          if (to_drives) on_drives += s.rate;
        }
      }
      CHECK(on_link <= link_rate * (1 + 1e-6));
      CHECK(on_drives <= drive_rate * (1 + 1e-6));
    }
  }
}
