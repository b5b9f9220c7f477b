#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/layer_graph.hpp"
#include "sim/graph/workload.hpp"
#include "validate/train/backend.hpp"
#include "validate/train/values.hpp"

/// The arithmetic of the operators of a layer graph (sim/graph/operators.hpp), forward and
/// backward.
///
/// An operator takes what the one before it left in the Flow, leaves its own output there, and
/// writes the storages that the graph says it saves; backward reads those alone. What it computes
/// with are the primitives of a backend (backend.hpp); what leaves an operator is rounded to the
/// network's type.
namespace tidegate::train {

/// Short-lived values between two operators of a pass, [tokens, width]: in forward the values
/// themselves, in backward their gradients. Empty is zero.
struct Flow {
  Values stream;  ///< the residual stream, [tokens, hidden]
  Values branch;  ///< within a sublayer, and in the head
  Values q, k, v;
  Values gate, up;
  double loss = 0;  ///< mean over tokens; forward of the head alone
};

/// Saved storages of one layer, micro-batch and rank, by identity: bytes as the graph counts them.
using Storages = std::map<std::int32_t, std::vector<std::byte>>;

/// One operator of one micro-batch. `tokens` and `labels` [tokens]: the batch is there whenever it
/// is asked for, and no tensor of the graph.
struct Site {
  const Workload& workload;
  const Layer& layer;
  const Operator& op;
  std::span<const std::int32_t> tokens, labels;
  const Backend& backend = cpu_backend();

  std::int64_t rows() const { return workload.micro_batch * workload.sequence; }
  bool saves(std::string_view name) const { return find(name) != nullptr; }
  void save(Storages& storages, std::string_view name, std::span<const float> values) const;
  Values saved(const Storages& storages, std::string_view name) const;
  /// Whether the operator saves it and it is there.
  bool has(const Storages& storages, std::string_view name) const;

 private:
  const SavedTensor* find(std::string_view name) const;
};

/// Parameters of an operator in its own order, [tensors][elements]; the tied projection is given
/// the embedding's table.
using Tensors = std::vector<Values>;

void forward(const Site& site, const Tensors& parameters, Flow& flow, Storages& storages);
/// The gradients of the parameters, in their order.
Tensors backward(const Site& site, const Tensors& parameters, Flow& flow, const Storages& storages);

/// Sets what enters an operator from what it has saved; or, where it has saved what it makes, that.
/// True in the second case: then there is nothing to run.
bool resume(const Site& site, Flow& flow, const Storages& storages);
/// Saves what an operator saves of what enters it, without running it.
void keep(const Site& site, const Flow& flow, Storages& storages);

/// Why this arithmetic cannot run the workload; empty when it can: a decoder on one
/// tensor-parallel rank without experts, dropout, post-norm or parallel residual, positions none,
/// learned or rotary, and a language-model head.
std::string unsupported(const Workload& workload);

/// sum over the reverse of forward's in-place sum: to += from, rounded; an empty `to` becomes
/// `from`.
void add_to(Values& to, std::span<const float> from, DType type,
            const Backend& backend = cpu_backend());

}  // namespace tidegate::train
