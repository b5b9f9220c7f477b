#include "models/curve.hpp"

#include <algorithm>
#include <cmath>

#include "models/base/error.hpp"

namespace tidegate {

Curve::Curve(std::vector<std::pair<double, double>> points) : points_(std::move(points)) {
  std::ranges::sort(points_);
  for (std::size_t i = 0; i < points_.size(); ++i) {
    ensure(points_[i].first > 0, "a curve point has a positive x");
    ensure(i == 0 || points_[i].first > points_[i - 1].first, "curve points have distinct x");
  }
}

double Curve::at(double x) const {
  ensure(!points_.empty(), "a curve has points before it is read");
  if (x <= points_.front().first) return points_.front().second;
  if (x >= points_.back().first) return points_.back().second;
  const auto above = std::ranges::upper_bound(points_, x, {}, &std::pair<double, double>::first);
  const auto& [x1, y1] = *above;
  const auto& [x0, y0] = *std::prev(above);
  return y0 + (y1 - y0) * std::log(x / x0) / std::log(x1 / x0);
}

}  // namespace tidegate
