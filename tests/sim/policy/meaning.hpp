#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/timeline/timeline.hpp"

/// Plans that carry their meaning, of scenarios given by overrides of one that the tree holds.
namespace tidegate::meant {

struct Run {
  Scenario scenario;
  LayerGraph graph;
  Plan plan;
  Timeline timeline;
};
/// Plans and simulates, after a profiling run where the policy asks for one.
Run run(const std::vector<Override>& overrides);

/// The timeline of the same plan on a machine of other speeds: every work takes a random time.
Timeline shuffled(const Run& run, std::uint64_t seed);

/// A decoder of four blocks on one node of `ranks` GPUs, whose drives reach GPU memory; thresholds
/// are scaled as the network is.
std::vector<Override> small(int ranks, int accumulation);

}  // namespace tidegate::meant
