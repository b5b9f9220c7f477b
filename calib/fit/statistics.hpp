#pragma once

#include <cstddef>
#include <span>

/// Plain statistics of samples. Order does not matter unless said. Of no values at all none of them
/// is defined: they throw std::logic_error, but for what says otherwise.
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

/// P(|T| <= t) of Student's distribution (Abramowitz and Stegun 26.7.3, 26.7.4), t >= 0.
double student_within(double t, int freedom);
/// The t for which a variable of Student's distribution lies within ±t with probability `level`
/// (closed forms of the distribution for whole degrees of freedom, Abramowitz and Stegun 26.7.3 and
/// 26.7.4; in between, linear in 1/freedom). freedom >= 1; beyond 10000, of the normal one.
double student_quantile(double freedom, double level = 0.95);

/// In time order. Correlation of neighbours; 0 for fewer than three values and for constant ones.
double autocorrelation(std::span<const double> series);

/// In time order: the split of log values into two levels that leaves the least squares, if two
/// levels explain the series better than one at p < 0.01: the F-test of the split with freedom
/// (1, n - 2), its level divided by the number of splits tried (Bonferroni), so that independent
/// noise is taken for a change in less than one series of a hundred. A level has at least three
/// values, so that one outlier is none.
/// at: first index of the second level, 0 when there is no change; ratio: second level over first.
struct ChangePoint {
  std::size_t at = 0;
  double ratio = 1;
  bool found() const { return at > 0; }
};
/// `series`: positive; empty or short ones have no change.
ChangePoint change_point(std::span<const double> series);

/// Steady state over the last windows, at least five, in time order: range at most 20 % of the
/// mean, fitted slope over the span at most 10 % of the mean (SNIA, Solid State Storage Performance
/// Test Specification, steady state), and no change point between levels that differ by more than 5
/// %. False for fewer windows.
bool is_steady(std::span<const double> windows);

}  // namespace tidegate::calib
