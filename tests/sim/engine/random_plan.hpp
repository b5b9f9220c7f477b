#pragma once

#include <cstdint>

#include "tests/sim/engine/toy.hpp"

namespace tidegate {

/// splitmix64: the same plans on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(next() % n); }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  bool chance(double p) { return uniform() < p; }

 private:
  std::uint64_t state_;
};

enum class Features { open_loop, all };

/// A sound plan of up to 60 tasks that cannot deadlock, with prices. open_loop: dependencies,
/// lanes, latencies, weights, mixed costs, bursts and choices; all: tokens, locks, memory, equal
/// instants and tasks without duration as well.
toy::Toy random_plan(std::uint64_t seed, Features features);

}  // namespace tidegate
