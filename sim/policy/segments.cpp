#include "sim/policy/segments.hpp"

#include <algorithm>

namespace tidegate {
namespace {

// Whether a collective follows operator `op` of a pass, or precedes the operator behind it.
bool ends_at_collective(const Layer& layer, bool is_backward, const SubModule& part,
                        std::size_t op) {
  const auto& operators = layer.operators;
  if (op >= operators.size()) return false;
  if (!is_backward) return !operators[op].forward_collectives.empty();
  const bool is_beside_next = op > part.first && !operators[op - 1].beside_backward.empty();
  return !operators[op].backward_collectives.empty() || is_beside_next;
}

}  // namespace

std::vector<Segment> segments_of(const Layer& layer, Pass pass, const SubModule& part, Cut cut) {
  const bool is_backward = pass == Pass::backward;
  std::vector<Segment> list;
  bool is_open = false;
  for (std::size_t i = 0; i <= part.last - part.first; ++i) {
    const std::size_t op = is_backward ? part.last - i : part.first + i;
    if (!is_open) list.push_back({op, op, false, false});
    list.back().first = std::min(list.back().first, op);
    list.back().last = std::max(list.back().last, op);
    is_open = cut == Cut::whole ||
              (cut == Cut::at_collectives && !ends_at_collective(layer, is_backward, part, op));
  }
  return list;
}

std::vector<Kernel> kernels_of(const Layer& layer, Pass pass, const Segment& segment) {
  if (pass == Pass::recompute_core) return layer.core_kernels();
  const bool is_backward = pass == Pass::backward;
  std::vector<Kernel> kernels;
  for (std::size_t i = 0; i <= segment.last - segment.first; ++i) {
    const std::size_t at = is_backward ? segment.last - i : segment.first + i;
    if (at >= layer.operators.size()) continue;
    const Operator& op = layer.operators[at];
    const auto& list = is_backward ? op.backward : op.forward;
    kernels.insert(kernels.end(), list.begin(), list.end());
  }
  return kernels;
}

std::size_t count_kernels(const Layer& layer, Pass pass, const Segment& segment) {
  if (pass == Pass::recompute_core) return layer.core_kernels().size();
  std::size_t count = 0;
  for (std::size_t op = segment.first; op <= segment.last && op < layer.operators.size(); ++op) {
    const Operator& of = layer.operators[op];
    count += (pass == Pass::backward ? of.backward : of.forward).size();
  }
  return count;
}

Bytes transient_of(const Layer& layer, Pass pass, std::size_t op) {
  if (op >= layer.operators.size()) return layer.workspace;
  const bool is_backward = pass == Pass::backward;
  const Bytes bytes = is_backward ? layer.backward_transient(op) : layer.forward_transient(op);
  // What the loss works on beside its logits.
  const bool is_loss = layer.kind == LayerKind::head && op + 1 == layer.operators.size();
  return is_loss ? std::max(bytes, layer.workspace) : bytes;
}

}  // namespace tidegate
