#pragma once

#include <span>
#include <vector>

#include "models/demand.hpp"
#include "models/machine.hpp"
#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"

/// Runs a plan in virtual time.
///
/// Between two events every running task has a constant rate. Rates solve the max-min problem
///
///   maximise, lexicographically from the smallest up, rate_i / weight_i
///   subject to   rate_i <= amount_i / alone_i
///                sum over users i of r:  cost_r,side(i) · fraction_ir · rate_i · alone_i /
///                amount_i <= 1
///
/// exactly, by progressive filling. cost is 1, or mixed_cost while both sides of r are busy, times
/// tired_cost once the burst of side 1 is spent. Instants are integer picoseconds; equal instants
/// are handled in task order. Same plan and demands, same bytes out, on every machine.
namespace tidegate {

/// A plan with its prices: demands[i] belongs to plan.works[i].
Timeline simulate(const Plan& plan, std::span<const Demand> demands,
                  std::span<const Resource> resources);

/// Prices the plan's works on the machine, then runs it.
Timeline simulate(const Plan& plan, const Machine& machine);

std::vector<Demand> price(const Plan& plan, const Machine& machine);

}  // namespace tidegate
