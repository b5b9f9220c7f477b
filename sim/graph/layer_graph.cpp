#include "sim/graph/layer_graph.hpp"

#include <algorithm>
#include <set>

namespace tidegate {
namespace {

Flops sum(const std::vector<Kernel>& kernels) {
  Flops total;
  for (const Kernel& kernel : kernels) total += flops_of(kernel);
  return total;
}

void append(std::vector<Kernel>& to, const std::vector<Kernel>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

std::int64_t Layer::parameters() const {
  std::int64_t total = 0;
  for (const Operator& op : operators) {
    for (const Parameter& p : op.parameters) total += p.elements;
  }
  return total;
}

Bytes Layer::saved() const {
  Bytes total;
  std::set<std::int32_t> seen;
  for (const Operator& op : operators) {
    for (const SavedTensor& t : op.saved) {
      if (seen.insert(t.identity).second) total += t.bytes;
    }
  }
  return total;
}

Flops Layer::forward_flops() const {
  Flops total;
  for (const Operator& op : operators) total += sum(op.forward);
  return total;
}

Flops Layer::backward_flops() const {
  Flops total;
  for (const Operator& op : operators) total += sum(op.backward);
  return total;
}

std::vector<Kernel> Layer::forward_kernels() const {
  std::vector<Kernel> kernels;
  for (const Operator& op : operators) append(kernels, op.forward);
  return kernels;
}

std::vector<Kernel> Layer::backward_kernels() const {
  std::vector<Kernel> kernels;
  for (auto op = operators.rbegin(); op != operators.rend(); ++op) append(kernels, op->backward);
  return kernels;
}

std::vector<Kernel> Layer::core_kernels() const {
  std::vector<Kernel> kernels;
  for (const Operator& op : operators) {
    if (op.is_attention_core) append(kernels, op.forward);
  }
  return kernels;
}

Bytes Layer::core_saved() const {
  // A storage that an operator outside the core keeps as well stays.
  std::set<std::int32_t> seen;
  for (const Operator& op : operators) {
    if (op.is_attention_core) continue;
    for (const SavedTensor& t : op.saved) seen.insert(t.identity);
  }
  Bytes total;
  for (const Operator& op : operators) {
    if (!op.is_attention_core) continue;
    for (const SavedTensor& t : op.saved) {
      if (seen.insert(t.identity).second) total += t.bytes;
    }
  }
  return total;
}

Flops LayerGraph::forward_flops() const {
  Flops total;
  for (const Layer& layer : layers) total += layer.forward_flops();
  return total;
}

Flops LayerGraph::backward_flops() const {
  Flops total;
  for (const Layer& layer : layers) total += layer.backward_flops();
  return total;
}

Bytes Layer::forward_transient(std::size_t op) const { return operators.at(op).output; }

Bytes Layer::backward_transient(std::size_t op) const {
  return input + operators.at(op).output + (op > 0 ? operators[op - 1].output : input);
}

Bytes LayerGraph::saved() const {
  Bytes total;
  for (const Layer& layer : layers) total += layer.saved();
  return total;
}

std::vector<Parameter> parameters_in_order(const Layer& layer) {
  std::vector<Parameter> all;
  for (const Operator& op : layer.operators) {
    all.insert(all.end(), op.parameters.begin(), op.parameters.end());
  }
  std::ranges::stable_sort(all, {}, &Parameter::order);
  return all;
}

std::vector<Parameter> parameters_in_order(const LayerGraph& graph) {
  std::vector<Parameter> all;
  for (const Layer& layer : graph.layers) {
    for (Parameter& p : parameters_in_order(layer)) {
      p.name = layer.name + "." + p.name;
      all.push_back(std::move(p));
    }
  }
  return all;
}

}  // namespace tidegate
