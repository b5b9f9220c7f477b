#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/demand.hpp"
#include "sim/plan/plan.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/timeline/timeline.hpp"
#include "validate/compare/comparison.hpp"
#include "validate/engine/rig.hpp"

/// A scenario predicted and run for real, side by side.
namespace tidegate {

struct TrialOptions {
  Pace pace = Pace::paced;
  /// Folders of the storage paths in the profile's order; one serves them all.
  std::vector<std::string> storage;
  Devices devices;   ///< real GPUs of a native run
  double scale = 1;  ///< of all sizes (validate/engine/scale.hpp)
  double gate = 0.08;
  /// Runs at most, until the lateness of the host (Comparison::floor) is below `calm`; the run with
  /// the least lateness is taken, whatever its error.
  int tries = 1;
  double calm = 0.02;
  std::int32_t draws = 0;  ///< machines drawn for the prediction's interval; 0: no interval
  std::uint64_t seed = 1;  ///< of the draws
};

/// What is expected, and all that is needed to run it.
struct Expected {
  Plan plan;  ///< scaled
  std::vector<Demand> demands;
  std::vector<Resource> resources;
  Timeline predicted;
  std::optional<PredictionInterval> interval;
  Rig rig;
  double gate = 0.08;
};

/// Throws InputError for what cannot be run: several nodes, ranks that stand for others, a plan
/// that does not fit, more folders than storage paths.
Expected expect(Scenario& scenario, const TrialOptions& options);
Comparison compare(const Expected& expected, const Execution& run);

struct RealTrial {
  Expected expected;
  Execution measured;
  Comparison comparison;
  int tries = 1;
};

/// Throws as expect and run_on do.
RealTrial run_trial(Scenario& scenario, const TrialOptions& options);

}  // namespace tidegate
