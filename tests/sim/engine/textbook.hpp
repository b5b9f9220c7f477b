#pragma once

#include <span>
#include <vector>

#include "models/demand.hpp"
#include "sim/plan/plan.hpp"

namespace tidegate {

/// Ends of all tasks in seconds, by the textbook: one entry per flow, every rate computed afresh by
/// progressive filling and every remaining work updated at every event, in doubles. Dependencies,
/// lanes, latencies, weights, mixed costs and bursts; no tokens, locks or memory.
/// It shares no code with the engine and is as slow as it is plain.
std::vector<double> textbook_ends(const Plan& plan, std::span<const Demand> demands,
                                  std::span<const Resource> resources);

}  // namespace tidegate
