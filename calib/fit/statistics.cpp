#include "calib/fit/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

std::vector<double> sorted(std::span<const double> values) {
  ensure(!values.empty(), "a statistic of no values");
  std::vector<double> copy(values.begin(), values.end());
  std::ranges::sort(copy);
  return copy;
}

double mean(std::span<const double> values) {
  ensure(!values.empty(), "a mean of no values");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The root of a rising function between 0 and the first power of two above it.
template <class Rising>
double where_zero(const Rising& rising) {
  double high = 1;
  while (rising(high) < 0 && high < 1e12) high *= 2;
  double low = 0;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (rising(middle) < 0 ? low : high) = middle;
  }
  return (low + high) / 2;
}

double squares_about_mean(std::span<const double> values) {
  const double m = mean(values);
  double sum = 0;
  for (const double x : values) sum += (x - m) * (x - m);
  return sum;
}

}  // namespace

double median(std::span<const double> values) { return quantile(values, 0.5); }

double quantile(std::span<const double> values, double q) {
  const std::vector<double> x = sorted(values);
  const double at = std::clamp(q, 0.0, 1.0) * static_cast<double>(x.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, x.size() - 1);
  if (x[below] == x[above]) return x[below];  // also of infinities
  return x[below] + (at - static_cast<double>(below)) * (x[above] - x[below]);
}

double spread(std::span<const double> values) {
  const double middle = median(values);
  std::vector<double> distances;
  for (const double x : values) distances.push_back(std::abs(x - middle));
  return 1.4826 * median(distances);
}

Interval median_interval(std::span<const double> values, double level) {
  const std::vector<double> x = sorted(values);
  const auto n = static_cast<double>(x.size());
  // The most ranks that may be left out at each end: P(fewer than k below the median) <= tail.
  const double tail = (1 - level) / 2;
  std::size_t k = 0;
  double below = 0;
  while (2 * k < x.size()) {
    const auto i = static_cast<double>(k);
    below += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1) -
                      n * std::numbers::ln2);
    if (below > tail) break;
    ++k;
  }
  const std::size_t rank = k == 0 ? 0 : k - 1;
  return {x[rank], x[x.size() - 1 - rank]};
}

Interval mean_interval(std::span<const double> values, double level) {
  const double m = mean(values);
  if (values.size() < 2) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return {-infinity, infinity};
  }
  const double freedom = static_cast<double>(values.size()) - 1;
  const double deviation = std::sqrt(squares_about_mean(values) / freedom);
  const double half = student_quantile(freedom, level) * deviation / std::sqrt(freedom + 1);
  return {m - half, m + half};
}

double student_within(double t, int freedom) {
  const double angle = std::atan(t / std::sqrt(freedom));
  const double cosine = std::cos(angle);
  const bool odd = freedom % 2 != 0;
  double term = odd ? cosine : 1.0;
  double sum = odd && freedom == 1 ? 0.0 : term;
  for (int k = odd ? 3 : 2; k <= freedom - 2; k += 2) {
    term *= cosine * cosine * (k - 1.0) / k;
    sum += term;
  }
  if (!odd) return std::sin(angle) * sum;
  return 2 / std::numbers::pi * (angle + std::sin(angle) * sum);
}

double student_quantile(double freedom, double level) {
  ensure(freedom >= 1 && level > 0 && level < 1, "Student's distribution without freedom");
  if (freedom > 1e4) {
    return where_zero([&](double t) { return std::erf(t / std::numbers::sqrt2) - level; });
  }
  const auto whole = [level](int nu) {
    return where_zero([&](double t) { return student_within(t, nu) - level; });
  };
  const int below = static_cast<int>(freedom);
  const double low = whole(below);
  if (freedom == below) return low;
  const double part = (1.0 / below - 1 / freedom) / (1.0 / below - 1.0 / (below + 1));
  return low + part * (whole(below + 1) - low);
}

double autocorrelation(std::span<const double> series) {
  if (series.size() < 3) return 0;
  const double all = squares_about_mean(series);
  const double m = mean(series);
  double neighbours = 0;
  for (std::size_t i = 1; i < series.size(); ++i)
    neighbours += (series[i - 1] - m) * (series[i] - m);
  return all <= 1e-24 * m * m * static_cast<double>(series.size()) ? 0 : neighbours / all;
}

ChangePoint change_point(std::span<const double> series) {
  constexpr std::size_t least = 3;
  constexpr double finest = 1e-6;  // relative: what clocks and counters resolve at best
  if (series.size() < 2 * least) return {};
  std::vector<double> logs;
  for (const double x : series) {
    ensure(x > 0, "a change point of values that are not positive");
    logs.push_back(std::log(x));
  }
  const auto n = static_cast<double>(logs.size());
  const std::span<const double> all(logs);
  const double whole = squares_about_mean(all) + n * finest * finest;
  const double splits = n - 2.0 * least + 1;
  const double t = student_quantile(n - 2, 1 - 0.01 / splits);
  // Squares that two levels may leave: F = (whole - parted) (n - 2) / parted >= t².
  double best = whole * (n - 2) / (n - 2 + t * t);
  ChangePoint found;
  for (std::size_t at = least; at + least <= logs.size(); ++at) {
    const auto first = all.first(at), second = all.subspan(at);
    const double parted =
        squares_about_mean(first) + squares_about_mean(second) + n * finest * finest;
    if (parted >= best) continue;
    best = parted;
    found = {at, std::exp(mean(second) - mean(first))};
  }
  return found;
}

bool is_steady(std::span<const double> windows) {
  if (windows.size() < 5) return false;
  const double m = mean(windows);
  const auto [least, most] = std::ranges::minmax(windows);
  if (!(least > 0) || most - least > 0.2 * m) return false;
  const double middle = (static_cast<double>(windows.size()) - 1) / 2;
  double with_time = 0, time = 0;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const double t = static_cast<double>(i) - middle;
    with_time += t * (windows[i] - m);
    time += t * t;
  }
  if (std::abs(with_time / time) * 2 * middle > 0.1 * m) return false;
  const ChangePoint change = change_point(windows);
  return !change.found() || std::abs(std::log(change.ratio)) <= std::log(1.05);
}

}  // namespace tidegate::calib
