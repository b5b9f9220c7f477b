#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "calib/measure/bench.hpp"

/// A chain of loads, each of which depends on the one before: what measures latency.
///
/// It visits every line of 64 bytes of a buffer once in random order (one cycle, Sattolo 1986), so
/// that prefetchers do not decide; in pages of 2 MiB neither does the translation of addresses. A
/// line also says its place in the cycle: after n steps from place p it must be p + n.
namespace tidegate::calib {

struct Line {
  std::uint32_t next = 0, place = 0;
  std::array<std::uint32_t, 14> rest{};
};
static_assert(sizeof(Line) == 64);

void link(std::span<Line> lines);

struct Walk {
  std::uint32_t at = 0;  ///< where it ended
  double steps = 0;
  Seconds elapsed;
  bool is_right = false;  ///< the last line's place is the one that so many steps lead to
};
/// From line `at` on for so long.
Walk walk(std::span<const Line> lines, std::uint32_t at, Seconds time);

}  // namespace tidegate::calib
