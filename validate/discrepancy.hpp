#pragma once

#include <span>

/// How much the models miss whatever the profile.
namespace tidegate {

/// A prediction beside its measurement.
struct Miss {
  double log_ratio = 0;  ///< log(measured / predicted)
  double deviation = 0;  ///< of the logarithm of the prediction, by the profile's uncertainties
};

/// The deviation m of an error of the models for which these misses are most likely:
///   max over m >= 0 of  sum log N(log_ratio; 0, deviation² + m²),
/// to a thousandth of a per cent, at most 1. Zero when the profiles' uncertainties explain all, and
/// without misses.
double model_deviation(std::span<const Miss> misses);

}  // namespace tidegate
