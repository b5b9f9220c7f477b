#pragma once

#include <utility>
#include <vector>

namespace tidegate {

/// A measured curve y(x), linear in log x between points, constant beyond the ends.
/// Points are kept sorted by x; x must be positive and distinct.
class Curve {
 public:
  Curve() = default;
  /// A constant.
  explicit Curve(double y) : points_{{1.0, y}} {}
  /// Throws std::logic_error when a point has x <= 0 or two points share an x.
  explicit Curve(std::vector<std::pair<double, double>> points);

  double at(double x) const;
  bool empty() const { return points_.empty(); }
  const std::vector<std::pair<double, double>>& points() const { return points_; }

 private:
  std::vector<std::pair<double, double>> points_;
};

}  // namespace tidegate
