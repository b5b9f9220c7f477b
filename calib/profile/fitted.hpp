#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "calib/fit/fit.hpp"
#include "models/calibration.hpp"

/// A fit of a profile beside the table that it was made from.
namespace tidegate::calib {

/// One measured setting of a fit.
struct FittedSetting {
  std::vector<double> x;  ///< coordinates of the form
  double measured = 0, low = 0, high = 0;
  double model = 0;
  /// log(model/measured); not a number where it cannot be told.
  double residual() const {
    const double r = std::log(model / measured);
    return std::isfinite(r) ? r : std::nan("");
  }
};

/// The settings of a fit, in the order of its table; empty where the profile has no such table, or
/// this program no such form.
std::vector<FittedSetting> settings_of(const Calibration::Fit& fit, const Calibration& c);

/// Names of the form's coordinates: the columns of the table with the ranges of the fit's domain.
std::vector<std::string> coordinates_of(const Calibration::Fit& fit, const Calibration& c);

/// What the form gives at `x`; none where this program has no such form.
std::optional<double> model_at(const Calibration::Fit& fit, std::span<const double> x);

}  // namespace tidegate::calib
