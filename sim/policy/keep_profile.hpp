#pragma once

#include <optional>
#include <vector>

#include "sim/policy/adaptive_keep.hpp"
#include "sim/policy/module_order.hpp"
#include "sim/timeline/timeline.hpp"

namespace tidegate {

/// What the adaptive keep rule needs of a profiling iteration on one rank: the tasks of forward by
/// node, and the stores. Nodes of a block are its attention, its feed-forward part and the rest
/// (norms and residual sums), which ends with the block: post-order of {layer, attention, MLP},
/// each with what is its own. Any other layer is one node.
class KeepProfile {
 public:
  /// The kernels of an operator, in the order of forward, and then what it stores.
  void computed(const LayerGraph& graph, const Position& at, TaskId kernels);
  void stored(TaskId first, TaskId last, Bytes bytes);

  /// The first operator that is kept, or none. A node's time is from the end of the operator before
  /// each of its operators to its end: gaps and waiting count, as between CUDA events.
  std::optional<Position> boundary(const Timeline& timeline,
                                   std::optional<BytesPerSecond> bandwidth, KeepSwitch flips) const;

 private:
  struct Computed {
    std::size_t node;
    TaskId kernels;
  };
  struct Node {
    Bytes volume;
    Position first, last;
    int part;
  };
  struct Store {
    TaskId first, last;
    Bytes bytes;
  };
  std::vector<Computed> operators_;
  std::vector<Node> nodes_;  // in the order in which they began
  std::vector<Store> stores_;

  std::size_t node_of(const LayerGraph& graph, const Position& at);
};

}  // namespace tidegate
