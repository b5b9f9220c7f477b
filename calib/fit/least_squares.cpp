#include "calib/fit/least_squares.hpp"

#include <algorithm>
#include <cmath>

#include <Eigen/Dense>
#include <unsupported/Eigen/LevenbergMarquardt>

namespace tidegate::calib::detail {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double huge = 1e3;   // of a log error: beyond any measurement
constexpr double step = 1e-6;  // of numerical derivatives, in logarithms

class Function : public Eigen::DenseFunctor<double> {
 public:
  Function(const Residuals& residuals, std::size_t count, std::span<const Side> sides)
      : DenseFunctor(static_cast<int>(sides.size()), static_cast<int>(count)),
        residuals_(&residuals),
        sides_(sides) {}

  std::vector<double> inside(const VectorXd& u) const {
    std::vector<double> x(sides_.size());
    for (std::size_t j = 0; j < x.size(); ++j) {
      const auto [center, half] = sides_[j];
      x[j] = center + half * std::tanh(u[static_cast<Eigen::Index>(j)] / half);
    }
    return x;
  }

  int operator()(const VectorXd& u, VectorXd& r) const {
    (*residuals_)(inside(u), {r.data(), static_cast<std::size_t>(r.size())});
    for (double& v : r) v = std::isfinite(v) ? std::clamp(v, -huge, huge) : huge;
    return 0;
  }

  int df(const VectorXd& u, MatrixXd& jacobian) const {
    VectorXd here(values()), there(values());
    (*this)(u, here);
    VectorXd moved = u;
    for (Eigen::Index j = 0; j < u.size(); ++j) {
      moved[j] = u[j] + step;
      (*this)(moved, there);
      moved[j] = u[j];
      jacobian.col(j) = (there - here) / step;
    }
    return 0;
  }

 private:
  const Residuals* residuals_;
  std::span<const Side> sides_;
};

}  // namespace

Minimum minimize(const Residuals& residuals, std::size_t count, std::span<const double> start,
                 std::span<const Side> sides) {
  Function function(residuals, count, sides);
  VectorXd u(static_cast<Eigen::Index>(sides.size()));
  for (std::size_t j = 0; j < sides.size(); ++j) {
    const auto [center, half] = sides[j];
    // At a bound the derivative vanishes; begin a little inside.
    const double part = std::clamp((start[j] - center) / half, -0.98, 0.98);
    u[static_cast<Eigen::Index>(j)] = half * std::atanh(part);
  }
  if (!sides.empty()) {
    Eigen::LevenbergMarquardt<Function> solver(function);
    // A ten-thousandth of the measurement's own error; flat valleys end by the last limit.
    solver.setFtol(1e-7);
    solver.setXtol(1e-5);
    solver.setMaxfev(60);
    solver.minimize(u);
  }
  VectorXd r(static_cast<Eigen::Index>(count));
  function(u, r);
  return {function.inside(u), r.squaredNorm()};
}

std::vector<std::vector<double>> response(const Residuals& residuals, std::size_t count,
                                          std::span<const double> x) {
  std::vector<Side> sides;
  for (const double center : x) sides.push_back({center, 1});
  Function function(residuals, count, sides);
  MatrixXd jacobian(static_cast<Eigen::Index>(count), static_cast<Eigen::Index>(x.size()));
  function.df(VectorXd::Zero(static_cast<Eigen::Index>(x.size())), jacobian);
  Eigen::CompleteOrthogonalDecomposition<MatrixXd> decomposition;
  decomposition.setThreshold(1e-5);
  const MatrixXd inverse = decomposition.compute(jacobian).pseudoInverse();
  std::vector<std::vector<double>> rows(x.size(), std::vector<double>(count));
  for (std::size_t j = 0; j < x.size(); ++j) {
    for (std::size_t i = 0; i < count; ++i) {
      rows[j][i] = inverse(static_cast<Eigen::Index>(j), static_cast<Eigen::Index>(i));
    }
  }
  return rows;
}

}  // namespace tidegate::calib::detail
