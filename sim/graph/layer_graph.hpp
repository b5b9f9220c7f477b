#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/work.hpp"

/// What one training step of one rank computes, with sizes; knows no hardware.
///
/// Layers are in topological order. Each has operators, in execution order; an operator names its
/// forward and backward kernels for one micro-batch, the parameters it owns and the tensors that it
/// saves for its backward. All sizes are those of one tensor-parallel rank and one micro-batch.
namespace tidegate {

/// A tensor kept from forward to backward. Tensors with equal `identity` are one storage and count
/// once; identity is unique per (layer, storage).
struct SavedTensor {
  std::string name;
  Bytes bytes;
  std::int32_t identity = 0;
  std::int64_t elements = 0;
};

/// One parameter tensor of this rank (after tensor parallelism, before ZeRO), in the order in which
/// the framework registers them.
struct Parameter {
  std::string name;
  std::int64_t elements = 0;
  /// Kept on every rank by ZeRO-3 below its persistence threshold: norms and biases.
  bool is_small = false;
  /// Registration position within the layer, where the framework's order is not the order of
  /// execution (Llama registers its norms last). Equal values keep the order of the operators.
  std::int32_t order = 0;
};

struct Operator {
  std::string name;
  std::vector<Kernel> forward, backward;
  std::vector<Parameter> parameters;
  std::vector<SavedTensor> saved;
  /// Part of the attention core that selective recomputation runs again.
  bool is_attention_core = false;
  /// Experts: only `active_fraction` of the parameters are used per token.
  double active_fraction = 1;
  /// Tensor parallelism only: what follows the forward (backward) kernels, `ranks` being the
  /// tensor-parallel size. Which GPUs take part is the planner's business.
  std::vector<Collective> forward_collectives, backward_collectives;
  /// The same, beside the backward kernels: the gather of a kept shard, which only the weight
  /// gradient waits for.
  std::vector<Collective> beside_backward;
  /// What leaves the operator: short-lived unless a later operator saves it.
  Bytes output;
};

enum class LayerKind : std::uint8_t { embedding, block, head, other };

struct Layer {
  std::string name;
  LayerKind kind = LayerKind::block;
  std::vector<Operator> operators;
  Bytes input;      ///< the tensor that enters: all that full recomputation keeps
  Bytes workspace;  ///< largest short-lived extra GPU memory in forward or backward

  std::int64_t parameters() const;
  Bytes saved() const;  ///< bytes saved for backward, each storage once
  Flops forward_flops() const;
  Flops backward_flops() const;
  /// Short-lived memory of one operator. In forward its output; in backward the gradients of its
  /// output and of its input, and the gradient of the layer's input, which waits for its sum.
  Bytes forward_transient(std::size_t op) const;
  Bytes backward_transient(std::size_t op) const;
  std::vector<Kernel> forward_kernels() const;
  std::vector<Kernel> backward_kernels() const;  ///< last operator first
  /// Forward kernels and saved bytes of the attention core alone: what selective recomputation
  /// runs again, and what it need not keep.
  std::vector<Kernel> core_kernels() const;
  Bytes core_saved() const;
};

struct LayerGraph {
  std::vector<Layer> layers;
  std::int64_t parameters = 0;         ///< unique parameters of the whole network (tied ones once)
  std::int64_t active_parameters = 0;  ///< used per token (mixture of experts); else equal
  std::int64_t tokens = 0;             ///< per micro-batch and rank
  std::int64_t sequences = 0;          ///< per micro-batch and rank
  DType dtype = DType::bf16;
  bool is_sequence_parallel = false;

  Flops forward_flops() const;
  Flops backward_flops() const;
  /// Bytes of all saved tensors of one micro-batch without recomputation.
  Bytes saved() const;
};

/// This rank's parameter tensors in the order in which the framework registers them, named
/// "layer.tensor". ZeRO partitions and sub-groups follow this order.
std::vector<Parameter> parameters_in_order(const LayerGraph& graph);
/// The same of one layer, named "tensor".
std::vector<Parameter> parameters_in_order(const Layer& layer);

}  // namespace tidegate
