#pragma once

#include <cstdint>
#include <vector>

#include "validate/train/operators.hpp"

/// A network with its parameters, and plain training of it: the reference that knows no plan.
namespace tidegate::train {

/// Parameter tensors of the network by layer and operator, each operator's in its own order.
using LayerTensors = std::vector<Tensors>;
using NetworkTensors = std::vector<LayerTensors>;

/// Initial parameters, rounded to the network's type: weights and tables normal with deviation
/// 0.02 (Radford et al. 2019), norms one, biases zero. The n-th tensor of the graph has the n-th
/// stream of `seed`.
NetworkTensors initial_parameters(const LayerGraph& graph, std::uint64_t seed);

/// Tokens and their successors, [tokens] each.
struct Batch {
  std::vector<std::int32_t> tokens, labels;
};
/// The batch of a micro-step of a rank: sequences x -> (3 x + 1 + noise) mod vocabulary, noise 0 or
/// 1, each from a start of its own, so that there is something to learn.
Batch batch_of(const Workload& workload, std::uint64_t seed, std::int64_t iteration,
               std::int64_t micro_step, std::int64_t rank);

/// The parameters that an operator computes with: its own, and the embedding's table where it is
/// a tied projection.
Tensors parameters_of(const LayerGraph& graph, const NetworkTensors& all, std::size_t layer,
                      std::size_t op);
bool is_tied_projection(const Operator& op);

/// Forward and backward of one micro-batch without anything leaving memory; with `recomputes`, a
/// block keeps its input alone and runs again before its backward.
struct MicroStep {
  double loss = 0;
  NetworkTensors gradients;  ///< rounded to the network's type
};
MicroStep run(const Workload& workload, const LayerGraph& graph, const NetworkTensors& parameters,
              const Batch& batch, bool recomputes = false, const Backend& backend = cpu_backend());

}  // namespace tidegate::train
