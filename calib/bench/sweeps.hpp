#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "calib/bench/ceilings.hpp"
#include "calib/measure/bench.hpp"

/// What the benches of CPU and memory have in common: which settings they visit, how long a sample
/// runs, and contents that can be told from others.
namespace tidegate::calib {

/// Parts of the available memory that benches hold. All may be held at once, by rows in random
/// order: together 53 %.
namespace memory_part {
inline constexpr double dram = 0.18, latency = 0.09, numa = 0.04, adam = 0.07, host_copy = 0.05,
                        pages = 0.04, cast = 0.02, norm = 0.02, beside = 0.02;
}
/// As many pieces of `bytes` as fit into that part, rounded down to a power of two: what is
/// available changes from run to run, and rows should not.
std::size_t fitting(const Setup& setup, double part, std::size_t bytes);

/// quick: 1 and all; standard: powers of two and all; full: every number up to 16.
std::vector<int> thread_counts(const Setup& setup);
/// first, first·factor, … below `most`, and `most` itself.
std::vector<std::size_t> sizes(std::size_t first, std::size_t most, std::size_t factor);

using Settings = std::vector<std::pair<std::string, double>>;
/// A row of CPU or memory work, gated on foreign CPU time.
Row cpu_row(std::string quantity, Settings at, Unit unit, const Ceiling& ceiling);

struct Timed {
  std::int64_t count = 0;
  Seconds elapsed;
  /// `work` done each time, per second.
  double rate(double work) const { return work * static_cast<double>(count) / elapsed.value(); }
};
inline double now() {
  const auto at = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(at).count();
}
/// Does `once` until `target` has passed, at least once. The clock is read after each: `once` is
/// meant to take microseconds or more.
template <class Once>
Timed run_for(Seconds target, Once&& once) {
  const double begin = now();
  Timed timed;
  do {
    once();
    ++timed.count;
    timed.elapsed = Seconds(now() - begin);
  } while (timed.elapsed < target);
  return timed;
}

/// A number in [1, 2) that depends on place and key; no two kernels could guess it.
float keyed(std::size_t i, std::uint32_t key);
void fill_keyed(std::span<float> a, std::uint32_t key);
/// About a thousand places spread over [0, n), both ends among them.
std::vector<std::size_t> spots(std::size_t n);

}  // namespace tidegate::calib
