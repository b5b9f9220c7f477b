#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/graph/layer_graph.hpp"
#include "sim/scenario/scenario.hpp"

/// Bounds without a plan: no schedule of a configuration is faster, and no run needs less memory.
namespace tidegate {

/// Of a pool, or of all pools of a kind on each node.
struct Need {
  std::string pool;
  Bytes bytes, capacity;
  bool is_gpu = false, is_host = false;
  bool fits() const { return bytes <= capacity; }
  bool operator==(const Need&) const = default;
};

/// What a pool needs: of what all share, all ranks' bytes, simulated or not (Machine::part()).
Need need_of(const Pool& pool, Bytes bytes, const Machine& machine);

/// GPU time of each layer's kernels alone.
struct KernelTimes {
  std::vector<Seconds> forward, backward, core;
};
KernelTimes kernel_times(const LayerGraph& graph, const Machine& machine);

/// A steady iteration takes at least
///
///   max(passes + update, work of each resource)
///   passes = max(kernels of a rank's micro-batches, work of each resource that ends with backward)
///   update = max(what a rank's thread does in turn, work of each resource in the update)
///
/// with passes and update apart only where the update follows backward. A resource's work is the
/// sum over ranks of fraction · time alone, at pure rates where a drive mixes. What is summed is
/// LeastWork (sim/policy/least.hpp), so collectives, waits and memory traffic beside kernels are
/// left out, and of a pipeline everything but kernels.
///
/// A pool needs at least what stands in it, a GPU also what forward leaves for backward and the
/// gradients that a whole backward leaves (ZeRO 0 and 1).
struct Bound {
  Seconds time, kernels, passes, update;
  std::string limited_by;  ///< "kernels", "thread", or a resource: what makes the larger part
  std::vector<Need> needs;
  bool may_fit() const;
};

Bound bound_of(Scenario& scenario, const LayerGraph& graph, const KernelTimes& times);

}  // namespace tidegate
