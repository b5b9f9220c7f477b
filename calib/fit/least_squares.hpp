#pragma once

#include <functional>
#include <span>
#include <vector>

/// Non-linear least squares within a box, by Eigen's Levenberg-Marquardt (a port of MINPACK's).
namespace tidegate::calib::detail {

/// Fills the residuals at `x`.
using Residuals = std::function<void(std::span<const double> x, std::span<double> residuals)>;

/// Where a coordinate may go: centre ± half, kept by x = centre + half · tanh(u / half).
struct Side {
  double center = 0, half = 1;
};

struct Minimum {
  std::vector<double> x;
  double squares = 0;  ///< sum of squared residuals
};
/// From `start`; `count` residuals, at least as many as coordinates. Residuals that are not finite
/// count as very large ones. Never throws for what the numbers are.
Minimum minimize(const Residuals& residuals, std::size_t count, std::span<const double> start,
                 std::span<const Side> sides);

/// How the coordinates at the minimum follow the data: row j, column i is d x_j / d residual_i, by
/// the pseudo-inverse of the Jacobian. Directions that the data do not determine are zero.
std::vector<std::vector<double>> response(const Residuals& residuals, std::size_t count,
                                          std::span<const double> x);

}  // namespace tidegate::calib::detail
