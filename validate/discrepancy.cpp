#include "validate/discrepancy.hpp"

#include <cmath>
#include <limits>

namespace tidegate {
namespace {

// Up to what does not depend on m.
double log_likelihood(std::span<const Miss> misses, double m) {
  double sum = 0;
  for (const Miss& miss : misses) {
    const double variance = miss.deviation * miss.deviation + m * m;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (variance == 0) return miss.log_ratio == 0 ? infinity : -infinity;
    sum -= (std::log(variance) + miss.log_ratio * miss.log_ratio / variance) / 2;
  }
  return sum;
}

}  // namespace

// There may be several maxima, so every value is tried.
double model_deviation(std::span<const Miss> misses) {
  constexpr int steps = 100'000;
  double best = 0;
  double highest = misses.empty() ? 0 : log_likelihood(misses, 0);
  for (int i = 1; i <= steps && !misses.empty(); ++i) {
    const double m = static_cast<double>(i) / steps;
    const double value = log_likelihood(misses, m);
    if (value > highest) {
      highest = value;
      best = m;
    }
  }
  return best;
}

}  // namespace tidegate
