#pragma once

#include <cstdint>
#include <span>
#include <vector>

/// Plain statistics of samples. Order does not matter unless said.
namespace tidegate::calib {

double median(std::span<const double> values);
/// Linear interpolation between order statistics (type 7 of Hyndman and Fan 1996).
double quantile(std::span<const double> values, double q);
/// 1.4826 · median |x - median|: a standard deviation that outliers do not move.
double spread(std::span<const double> values);

struct Interval {
  double low = 0, high = 0;
  bool contains(double x) const { return low <= x && x <= high; }
  bool overlaps(const Interval& other) const { return low <= other.high && other.low <= high; }
};
/// Distribution-free interval of the median from order statistics (binomial ranks), at least
/// `level`. Of fewer than six samples at 95 %, the whole range.
Interval median_interval(std::span<const double> values, double level = 0.95);
/// Mean ± t · s / sqrt(n) of block values; of one value, infinite on both sides.
Interval mean_interval(std::span<const double> values, double level = 0.95);

/// In time order. Correlation of neighbours.
double autocorrelation(std::span<const double> series);

/// In time order: the split of log values into two levels that lowers BIC most, if any does. at:
/// first index of the second level, ratio: second level over first, 0 index when no change.
struct ChangePoint {
  std::size_t at = 0;
  double ratio = 1;
  bool found() const { return at > 0; }
};
ChangePoint change_point(std::span<const double> series);

/// Steady state over the last windows, in time order: range at most 20 % of the mean, fitted slope
/// over the span at most 10 % of the mean (as SNIA's PTS asks), and no change point.
bool is_steady(std::span<const double> windows);

}  // namespace tidegate::calib
