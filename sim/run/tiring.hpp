#pragma once

#include <cstdint>

#include "sim/run/predict.hpp"

/// Drives whose cache fills (Resource::burst) are fast at first. The last two iterations of a run
/// stand for a long run only when the cache has been full before them.
namespace tidegate {

/// Iterations that a run of this plan needs so that its last two come behind the filling of every
/// cache that a long run fills: k + 3, where in iteration k the cache of the last of them is full.
/// What a cache holds after an iteration is what it held, and
///
///   bytes written - recovery · time without writes
///
/// as long as that is above zero. Beyond the iterations of this run its last two are continued.
/// 0 when no cache is ever full.
std::int64_t iterations_until_tired(const SimulatedPlan& run);

}  // namespace tidegate
