#pragma once

#include "sim/plan/plan.hpp"

namespace tidegate {

/// The same plan with `factor` of its bytes, kernels, elements and times: every buffer, capacity
/// and work is that much smaller (or larger), rounded up to whole bytes and elements; of matrix
/// products and attention the rows, so that FLOPs go with it. Order and choices stay. Rates that
/// depend on sizes (ramps, efficiencies) are those of the smaller sizes.
Plan scaled(const Plan& plan, double factor);

}  // namespace tidegate
