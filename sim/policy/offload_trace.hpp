#pragma once

#include <cstddef>
#include <vector>

#include "sim/offload/trace.hpp"
#include "sim/policy/saved_tensors.hpp"
#include "sim/policy/step.hpp"
#include "sim/timeline/timeline.hpp"

/// From a profiling iteration to the trace that offload planners see (sim/offload/trace.hpp).
namespace tidegate {

/// The operators and tensors of a network in one numbering, layers one after the other.
struct TensorIndex {
  struct Tensor {
    std::size_t layer = 0, in_layer = 0;  ///< index of SavedTensors
    /// Operators that run again to make it from the tensors saved before it in its layer: the one
    /// that saved those (its result was not kept) up to its maker. Empty: it cannot be made again.
    std::vector<std::size_t> remade_by;
    /// Tensors of the layer, by their place in it, that these operators read beside what the first
    /// of them made: the stream at a residual sum, and what operators before have saved.
    std::vector<std::size_t> from;
  };
  std::vector<SavedTensors> layers;
  std::vector<std::size_t> first_operator, first_tensor;  ///< by layer
  std::vector<Tensor> tensors;
  std::size_t operators = 0;

  TensorIndex() = default;
  /// `splits`: tensor-parallel; what would need a collective is not made again.
  TensorIndex(const LayerGraph& graph, bool splits);

  std::size_t op(std::size_t layer, std::size_t in_layer) const {
    return first_operator[layer] + in_layer;
  }
  std::size_t tensor(std::size_t layer, std::size_t in_layer) const {
    return first_tensor[layer] + in_layer;
  }
};

/// The kernels of one micro-batch on one rank, by operator.
struct ProfiledKernels {
  std::vector<TaskId> forward, backward;
};

/// What may leave the GPU.
struct MoveRules {
  std::int64_t threshold = 1 << 20;  ///< elements
  bool moves_head = false;
};

/// All but the times. Standing is what the plan has reserved; with ZeRO 3 also the parameters of
/// the two largest layers.
TensorTrace trace_of(const Step& step, std::uint16_t rank, const TensorIndex& index,
                     const MoveRules& rules);

/// Times are from the end of the operator before to the end of each, waits included.
void set_times(TensorTrace& trace, const TensorIndex& index, const ProfiledKernels& kernels,
               const Timeline& timeline);

}  // namespace tidegate
