#pragma once

#include <cstdint>
#include <random>

#include "models/base/yaml.hpp"

/// What a profile does not know exactly, drawn at random.
namespace tidegate {

/// A profile's values with every one that states an uncertainty multiplied by a factor of its own:
///
///   factor = exp(s · z),   s = sqrt(ln(1 + u²)),   z standard normal
///
/// so that its median is 1 and its relative standard deviation is u, the uncertainty stated. All
/// points of a curve share one factor and stay at most 1. Values are drawn apart: how the errors of
/// two values hang together, no profile says. `values` is a composed profile (profile_values).
yaml::Value drawn(yaml::Value values, std::mt19937_64& random);

/// Values that state an uncertainty above zero, and rates and times that state none.
struct Known {
  std::int32_t uncertain = 0, silent = 0;
};
Known known(const yaml::Value& values);

}  // namespace tidegate
