#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/run/predict.hpp"

namespace tidegate {

struct IntervalOptions {
  std::int32_t draws = 32;
  std::uint64_t seed = 1;
  std::int32_t threads = 0;  ///< 0: as many as there are cores. The result is the same for any
};

/// Iteration times of the same plan on machines drawn from the profile's uncertainties
/// (models/uncertainty.hpp), in the order of draws. A draw that no machine can have, such as links
/// below what a collective takes of them, is drawn again.
///
/// The plan stays: a policy that adapts would sometimes choose otherwise.
std::vector<Seconds> drawn_times(const Scenario& scenario, const Prediction& prediction,
                                 const IntervalOptions& options = {});

/// Fills report.range: exp(mean ± 1.645 · deviation) of the logarithms of drawn_times, moved so
/// that the times' middle is the prediction.
void add_interval(const Scenario& scenario, Prediction& prediction,
                  const IntervalOptions& options = {});

}  // namespace tidegate
