#pragma once

#include <string>
#include <vector>

#include "validate/log/comparison.hpp"

namespace tidegate {

/// Settings in which the log's run differs from the scenario: printed ones, the micro-steps counted
/// between updates, and the batch that follows from samples per second and iteration time (when it
/// is off by more than a fifth; the rate includes the time between iterations).
std::vector<LogMismatch> mismatches_of(const TrainingLog& log, const SteadyLog& steady,
                                       const Scenario& scenario, const Report& report);

/// The phase with most of the difference, and the resources that the predicted iteration hangs on.
std::vector<std::string> explanations_of(const LogComparison& comparison, const Report& report);

/// Why a timer of an engine stands alone.
std::string why_alone(const std::string& timer);

/// Sequences of one iteration, all GPUs.
std::int64_t global_batch_of(const Scenario& scenario, const Report& report);

}  // namespace tidegate
