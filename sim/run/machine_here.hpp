#pragma once

#include "sim/scenario/scenario.hpp"

namespace tidegate {

/// The part of `machine` that the scenario's plan is simulated on. `machine` is the scenario's, or
/// one like it with other rates.
Machine machine_here(const Scenario& scenario, const Machine& machine);

}  // namespace tidegate
