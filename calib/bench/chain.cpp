#include "calib/bench/chain.hpp"

#include <random>
#include <utility>

#include "calib/bench/sweeps.hpp"

namespace tidegate::calib {

void link(std::span<Line> lines) {
  std::mt19937_64 random(1);
  for (std::uint32_t i = 0; i < lines.size(); ++i) lines[i].next = i;
  for (std::size_t i = lines.size() - 1; i > 0; --i) {
    std::swap(lines[i].next, lines[random() % i].next);
  }
  std::uint32_t at = 0;
  for (std::uint32_t place = 0; place < lines.size(); ++place) {
    lines[at].place = place;
    at = lines[at].next;
  }
}

Walk walk(std::span<const Line> lines, std::uint32_t at, Seconds time) {
  constexpr std::uint64_t steps = 2000;
  const std::uint64_t first = lines[at].place;
  const Timed timed = run_for(time, [&] {
    for (std::uint64_t i = 0; i < steps; ++i) at = lines[at].next;
  });
  const std::uint64_t walked = static_cast<std::uint64_t>(timed.count) * steps;
  return {at, static_cast<double>(walked), timed.elapsed,
          lines[at].place == (first + walked) % lines.size()};
}

}  // namespace tidegate::calib
