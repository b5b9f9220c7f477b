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
/// saves for its backward.
namespace tidegate {

/// A tensor kept from forward to backward. Tensors with equal `identity` are one storage and count
/// once; identity is unique per (layer, storage).
struct SavedTensor {
  std::string name;
  Bytes bytes;
  std::int32_t identity = 0;
};

/// One parameter tensor of this rank (after tensor parallelism, before ZeRO), in the order in which
/// the framework registers them.
struct Parameter {
  std::string name;
  std::int64_t elements = 0;
  /// Kept on every rank by ZeRO-3 below its persistence threshold: norms and biases.
  bool is_small = false;
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
};

enum class LayerKind : std::uint8_t { embedding, block, head, other };

struct Layer {
  std::string name;
  LayerKind kind = LayerKind::block;
  std::vector<Operator> operators;
  Bytes input;      ///< the tensor that enters: all that full recomputation keeps
  Bytes workspace;  ///< largest short-lived extra GPU memory in forward or backward

  std::int64_t parameters() const;
  Bytes saved() const;                 ///< bytes saved for backward, each storage once
  Flops forward_flops() const;
  std::vector<Kernel> forward_kernels() const;
  std::vector<Kernel> backward_kernels() const;
  /// Kernels and saved bytes of the attention core alone (selective recomputation).
  std::vector<Kernel> core_kernels() const;
  Bytes core_saved() const;
};

struct LayerGraph {
  std::vector<Layer> layers;
  std::int64_t parameters = 0;        ///< unique parameters of the whole network (tied ones once)
  std::int64_t active_parameters = 0; ///< used per token (mixture of experts); else equal
  std::int64_t tokens = 0;            ///< per micro-batch and rank
  std::int64_t sequences = 0;         ///< per micro-batch and rank
  DType dtype = DType::bf16;

  Flops forward_flops() const;
  /// Bytes of all saved tensors of one micro-batch without recomputation.
  Bytes saved() const;
};

std::vector<Parameter> parameters_in_order(const LayerGraph& graph);

}  // namespace tidegate
