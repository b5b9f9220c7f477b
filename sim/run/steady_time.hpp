#pragma once

#include <span>

#include "models/demand.hpp"
#include "sim/plan/plan.hpp"

namespace tidegate {

/// Time of one iteration of the plan's steady period, simulated.
Seconds steady_time(const Plan& plan, std::span<const Demand> demands,
                    std::span<const Resource> resources);

}  // namespace tidegate
