#include "calib/fit/noise.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "calib/fit/statistics.hpp"

namespace tidegate::calib {
namespace {

constexpr double most_freedom = 50;
constexpr std::size_t least_rows = 8;

// x with trigamma(x) = y > 0: trigamma falls, so halving finds it.
double inverse_trigamma(double y) {
  double low = 1e-3, high = 1e6;
  for (int i = 0; i < 100; ++i) {
    const double middle = std::sqrt(low * high);
    (trigamma(middle) > y ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

}  // namespace

double digamma(double x) {
  double shift = 0;
  for (; x < 8; x += 1) shift -= 1 / x;
  const double q = 1 / (x * x);
  return shift + std::log(x) - 0.5 / x - q * (1.0 / 12 - q * (1.0 / 120 - q / 252));
}

double trigamma(double x) {
  double shift = 0;
  for (; x < 8; x += 1) shift += 1 / (x * x);
  const double q = 1 / (x * x);
  return shift + 1 / x + q / 2 + q / x * (1.0 / 6 - q * (1.0 / 30 - q / 42));
}

KnownSpread prior_of(std::span<const KnownSpread> rows) {
  // e = log s² less what its expectation is off by; e scatters by trigamma(d/2) from chance alone.
  std::vector<double> e;
  double chance = 0;
  for (const auto& [spread, freedom] : rows) {
    if (!(spread > 0) || !(freedom >= 1)) continue;
    e.push_back(2 * std::log(spread) - digamma(freedom / 2) + std::log(freedom / 2));
    chance += trigamma(freedom / 2);
  }
  if (e.size() < least_rows) return {};
  const auto n = static_cast<double>(e.size());
  double mean = 0, variance = 0;
  for (const double v : e) mean += v / n;
  for (const double v : e) variance += (v - mean) * (v - mean) / (n - 1);
  const double excess = variance - chance / n;
  double freedom = most_freedom;
  if (excess > trigamma(most_freedom / 2)) freedom = 2 * inverse_trigamma(excess);
  return {std::exp((mean + digamma(freedom / 2) - std::log(freedom / 2)) / 2), freedom};
}

KnownSpread moderated(const KnownSpread& own, const KnownSpread& prior) {
  const double freedom = own.freedom + prior.freedom;
  if (!(freedom > 0)) return own;
  const double squares =
      prior.freedom * prior.spread * prior.spread + own.freedom * own.spread * own.spread;
  return {std::sqrt(squares / freedom), freedom};
}

double two_sided(double t, double freedom) {
  t = std::abs(t);
  if (!(freedom < 1e4)) return std::erfc(t / std::numbers::sqrt2);
  const double nu = std::max(freedom, 1.0);
  const int below = static_cast<int>(nu);
  const double low = 1 - student_within(t, below);
  if (nu == below) return low;
  const double part = (1.0 / below - 1 / nu) / (1.0 / below - 1.0 / (below + 1));
  return low + part * (1 - student_within(t, below + 1) - low);
}

double freedom_of_sum(const KnownSpread& a, const KnownSpread& b) {
  const double aa = a.spread * a.spread, bb = b.spread * b.spread;
  return (aa + bb) * (aa + bb) / (aa * aa / a.freedom + bb * bb / b.freedom);
}

}  // namespace tidegate::calib
