#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

/// Seeded noise for tests, the same on every machine (std::normal_distribution is not).
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : bits_(seed) {}
  double uniform() { return (static_cast<double>(bits_() >> 11) + 0.5) * 0x1p-53; }
  double normal() {
    return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
  }
  /// A factor of relative standard deviation `deviation`.
  double factor(double deviation) { return std::exp(deviation * normal()); }

 private:
  std::mt19937_64 bits_;
};
