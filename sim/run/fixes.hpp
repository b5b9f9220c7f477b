#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/run/predict.hpp"

namespace tidegate {

struct FixSearch {
  std::int32_t most_simulations = 40;
  std::size_t wanted = 3;
  /// Told before each simulation how many there were.
  std::function<void(std::int32_t tried)> progress;
};

/// Changes with which a scenario that does not fit would fit. `base` is the prediction of
/// load_scenario(source, overrides). Every single change (changes.hpp) is simulated as long as
/// simulations are left; when fewer than wanted fit, pairs of those that do not fit alone follow,
/// in the order of the need and the time that the single ones let expect; when nothing fits, the
/// nearest together with one more.
///
/// Offered is what fits, changes the fewest keys and then is fastest; of changes of the same keys
/// the fastest comes first and others only if nothing else is left; never one that contains
/// another. Every change leaves tokens per iteration as they are. The same input gives the same
/// answer.
Report::Fixes find_fixes(const ScenarioSource& source, const std::vector<Override>& overrides,
                         const Prediction& base, const FixSearch& search = {});
Report::Fixes find_fixes(const std::string& path, const std::vector<Override>& overrides,
                         const Prediction& base, const FixSearch& search = {});

}  // namespace tidegate
