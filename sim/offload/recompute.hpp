#pragma once

#include <vector>

#include "sim/offload/moves.hpp"

/// How tensors are made again.
///
/// Within a layer, tensors that the same operator makes form a group, and groups follow each other
/// as their operators do. A recomputed tensor is made from the nearest group before it in its layer
/// of which nothing is recomputed, the source; the groups between are recomputed on the way. Such a
/// run of groups is made once, in forward order, right before the backward of its tensor needed
/// first, and stays until each tensor's own backward. So
///
///   time of a run  = sum of Tensor::recompute over its recomputed tensors,
///   memory of a run: all of it from that one point on (as segment checkpointing has it),
///
/// and the source must be on the GPU at that point: an offloaded source comes back that early, and
/// so does whatever else the run reads (Tensor::from). Where one of these is itself recomputed,
/// from before the source, the run begins there: a run makes all that it reads. A run that takes a
/// group of a layer with it although only a sibling was needed errs towards more memory, never
/// towards less. The first group of a layer has no source and is never recomputed.
namespace tidegate {

class Recomputation {
 public:
  explicit Recomputation(const TensorTrace& trace);

  /// May be recomputed: it can, it may move, and its layer has something before it.
  bool is_candidate(std::size_t tensor) const { return is_candidate_[tensor]; }
  /// Sets when each recomputed tensor is made again, and brings forward `in_before` (and `in_at`)
  /// of offloaded sources, in the layer of `tensor` or in all layers.
  void settle(std::vector<Move>& moves, std::size_t tensor) const;
  void settle(std::vector<Move>& moves) const;
  /// The tensors of the layer of `tensor`, by groups in forward order.
  const std::vector<std::size_t>& layer_of(std::size_t tensor) const {
    return layers_[layer_of_[tensor]];
  }

 private:
  void settle_layer(std::vector<Move>& moves, const std::vector<std::size_t>& layer) const;
  void bring_what_is_read(std::vector<Move>& moves, const std::vector<std::size_t>& layer) const;

  const TensorTrace& trace_;
  std::vector<std::vector<std::size_t>> layers_;
  std::vector<std::size_t> layer_of_;
  std::vector<bool> is_candidate_;
};

}  // namespace tidegate
