#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/run/predict.hpp"

namespace tidegate {

/// What the models miss whatever the profile: standard deviation of the logarithm of an iteration
/// time. The most likely value for the published iteration times out of sample, beside what their
/// profiles' uncertainties explain (validate/discrepancy.hpp); published_interval_test holds it
/// against them.
inline constexpr double published_model_deviation = 0.035;

struct IntervalOptions {
  std::int32_t draws = 32;
  std::uint64_t seed = 1;
  std::int32_t threads = 0;  ///< 0: as many as there are cores. The result is the same for any
  double model_deviation = published_model_deviation;
};

/// Iteration times of the same plan on machines drawn from the profile's uncertainties
/// (models/uncertainty.hpp), in the order of draws. A draw that no machine can have, such as links
/// below what a collective takes of them, is drawn again.
///
/// The plan stays: a policy that adapts would sometimes choose otherwise.
std::vector<Seconds> drawn_times(const Scenario& scenario, const Prediction& prediction,
                                 const IntervalOptions& options = {});

/// Half the width of an interval that holds nine in ten, in deviations of a normal distribution.
inline constexpr double nine_in_ten = 1.645;

/// Fills report.range: time · exp(±1.645 · sqrt(p² + m²)) with the deviation p of the logarithms of
/// drawn_times and the models' m. The prediction is the middle.
void add_interval(const Scenario& scenario, Prediction& prediction,
                  const IntervalOptions& options = {});

}  // namespace tidegate
