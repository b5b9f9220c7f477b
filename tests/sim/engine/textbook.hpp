#pragma once

#include <span>
#include <vector>

#include "models/demand.hpp"
#include "sim/plan/plan.hpp"

namespace tidegate {

struct TextbookRun {
  std::vector<double> ends;  ///< by task, seconds
  std::vector<bool> is_skipped;
};

/// When all tasks end, and which were skipped, by the textbook: one entry per flow, every rate
/// computed afresh by progressive filling and every remaining work updated at every event, in
/// doubles. Dependencies, lanes, latencies, weights, mixed costs, bursts and choices; no tokens,
/// locks or memory. It shares no code with the engine and is as slow as it is plain.
TextbookRun textbook_run(const Plan& plan, std::span<const Demand> demands,
                         std::span<const Resource> resources);

}  // namespace tidegate
