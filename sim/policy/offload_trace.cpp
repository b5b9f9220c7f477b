#include "sim/policy/offload_trace.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "sim/policy/segments.hpp"

namespace tidegate {
namespace {

// Made by the operator that saves it; anything else that an operator saves came to it.
bool is_own(const SavedTensor& t, const Operator& op) {
  const std::string_view name = t.name;
  for (const std::string_view own : {"mask", "softmax", "log_sum_exp", "log_softmax", "output",
                                     "gate_activation", "normalized"}) {
    if (name.find(own) != std::string_view::npos) return true;
  }
  // Projections stand with the operator that makes them (attention.cpp).
  const bool is_projection = name.ends_with("q") || name.ends_with("k") || name.ends_with("v");
  return is_projection && !op.is_attention_core;
}

std::vector<std::size_t> remade_by(const Layer& layer, const SavedTensors& saved,
                                   std::size_t tensor, bool splits) {
  const SavedTensors::Tensor& t = saved.tensors[tensor];
  std::size_t before = layer.operators.size();
  for (const SavedTensors::Tensor& other : saved.tensors) {
    if (other.first >= t.first) continue;
    if (before == layer.operators.size() || other.first > before) before = other.first;
  }
  if (before == layer.operators.size()) return {};  // nothing before it in its layer
  const std::size_t end = t.first + (is_own(t.saved, layer.operators[t.first]) ? 1 : 0);
  std::vector<std::size_t> list;
  for (std::size_t op = before; op < end; ++op) {
    if (splits && !layer.operators[op].forward_collectives.empty()) return {};
    list.push_back(op);
  }
  return list;
}

// The operator with which the sublayer of a residual sum begins: the sum reads what entered it.
std::size_t sublayer_of(const Layer& layer, std::size_t residual) {
  std::size_t op = residual;
  while (op > 0 && !layer.operators[op - 1].name.ends_with("_residual")) --op;
  return op;
}

std::vector<std::size_t> read_beside(const Layer& layer, const SavedTensors& saved,
                                     const std::vector<std::size_t>& operators) {
  std::vector<std::size_t> from;
  if (operators.empty()) return from;
  const std::size_t first = operators.front();
  for (const std::size_t t : saved.needed_at[first]) {
    if (saved.tensors[t].first != first) from.push_back(t);
  }
  for (const std::size_t op : operators) {
    if (!layer.operators[op].name.ends_with("_residual")) continue;
    const std::size_t start = sublayer_of(layer, op);
    if (start < first && !saved.saved_at[start].empty()) from.push_back(saved.saved_at[start][0]);
  }
  return from;
}

Bytes gathered(const Step& step) {
  if (step.setting().zero.stage < 3) return Bytes(0);
  std::vector<double> sizes;
  for (const Layer& layer : step.graph().layers) {
    sizes.push_back(static_cast<double>(layer.parameters()));
  }
  std::ranges::sort(sizes, std::greater<>());
  sizes.resize(std::min<std::size_t>(sizes.size(), 2));
  double elements = 0;
  for (const double s : sizes) elements += s;
  return Bytes(elements * bytes_per_element(step.graph().dtype));
}

Bytes gradients_of(const Step& step, std::size_t layer, std::size_t op) {
  double elements = 0;
  for (const Parameter& p : step.graph().layers[layer].operators[op].parameters) {
    elements += static_cast<double>(p.elements);
  }
  return Bytes(elements * bytes_per_element(step.graph().dtype));
}

Bytes transient_at(const Step& step, const Visit& visit, std::size_t op) {
  const bool has_gradients = visit.pass == Pass::backward && step.setting().zero.stage >= 2;
  return transient_of(step.graph().layers[visit.layer], visit.pass, op) +
         (has_gradients ? gradients_of(step, visit.layer, op) : Bytes(0));
}

}  // namespace

TensorIndex::TensorIndex(const LayerGraph& graph, bool splits) {
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    const Layer& layer = graph.layers[l];
    layers.emplace_back(layer, StoreScope{}, true);
    first_operator.push_back(operators);
    first_tensor.push_back(tensors.size());
    operators += layer.operators.size();
    for (std::size_t i = 0; i < layers.back().tensors.size(); ++i) {
      const auto run = remade_by(layer, layers.back(), i, splits);
      tensors.push_back({l, i, run, read_beside(layer, layers.back(), run)});
    }
  }
}

TensorTrace trace_of(const Step& step, std::uint16_t rank, const TensorIndex& index,
                     const MoveRules& rules) {
  TensorTrace trace;
  const LayerGraph& graph = step.graph();
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    for (std::size_t op = 0; op < graph.layers[l].operators.size(); ++op) {
      trace.operators.push_back({l, op, Seconds(0), Seconds(0)});
    }
  }
  for (const TensorIndex::Tensor& t : index.tensors) {
    const Layer& layer = graph.layers[t.layer];
    const SavedTensors::Tensor& saved = index.layers[t.layer].tensors[t.in_layer];
    std::vector<std::size_t> from;
    for (const std::size_t k : t.from) from.push_back(index.tensor(t.layer, k));
    const bool is_free = layer.kind != LayerKind::head || rules.moves_head;
    trace.tensors.push_back({.name = layer.name + "." + saved.saved.name,
                             .bytes = saved.saved.bytes,
                             .first = index.op(t.layer, saved.first),
                             .last = index.op(t.layer, saved.last),
                             .may_move = is_free && saved.saved.elements >= rules.threshold,
                             .recompute = Seconds(-1),
                             .from = std::move(from)});
  }
  trace.standing = step.standing(step.gpu_pool(rank)) + gathered(step);
  const std::size_t n = trace.operators.size();
  trace.transient.resize(2 * n);
  const bool piles_up = step.setting().zero.stage < 2 && !step.setting().zero.contiguous_gradients;
  Bytes gradients;  // so far
  for (std::size_t i = n; i-- > 0;) {
    const auto& at = trace.operators[i];
    if (piles_up) gradients += gradients_of(step, at.layer, at.op);
    trace.transient[i] = transient_at(step, {at.layer, Pass::forward}, at.op);
    trace.transient[2 * n - 1 - i] =
        transient_at(step, {at.layer, Pass::backward}, at.op) + gradients;
  }
  return trace;
}

void set_times(TensorTrace& trace, const TensorIndex& index, const ProfiledKernels& kernels,
               const Timeline& timeline) {
  const auto end_of = [&](TaskId t) { return timeline.end[tidegate::index(t)]; };
  Instant before = timeline.start[tidegate::index(kernels.forward.front())];
  for (std::size_t i = 0; i < trace.operators.size(); ++i) {
    const Instant end = end_of(kernels.forward[i]);
    trace.operators[i].forward = to_seconds(end - before);
    before = end;
  }
  before = timeline.start[tidegate::index(kernels.backward.back())];
  for (std::size_t i = trace.operators.size(); i-- > 0;) {
    const Instant end = end_of(kernels.backward[i]);
    trace.operators[i].backward = to_seconds(end - before);
    before = end;
  }
  for (std::size_t t = 0; t < trace.tensors.size(); ++t) {
    const TensorIndex::Tensor& tensor = index.tensors[t];
    if (tensor.remade_by.empty()) continue;
    Seconds remake;
    for (const std::size_t op : tensor.remade_by) {
      remake += trace.operators[index.op(tensor.layer, op)].forward;
    }
    trace.tensors[t].recompute = remake;
  }
}

}  // namespace tidegate
