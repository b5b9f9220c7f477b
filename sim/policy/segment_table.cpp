#include "sim/policy/segment_table.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tidegate {
namespace {

bool are_alike(const Parameter& a, const Parameter& b) { return a.elements == b.elements; }

// All that kernels_of and transient_of look at.
bool are_alike(const Operator& a, const Operator& b) {
  const auto same = [](const Parameter& p, const Parameter& q) { return are_alike(p, q); };
  return a.is_attention_core == b.is_attention_core && a.output == b.output &&
         a.forward == b.forward && a.backward == b.backward &&
         std::ranges::equal(a.parameters, b.parameters, same);
}

bool are_alike(const Layer& a, const Layer& b) {
  const auto same = [](const Operator& p, const Operator& q) { return are_alike(p, q); };
  return std::tie(a.kind, a.input, a.workspace) == std::tie(b.kind, b.input, b.workspace) &&
         std::ranges::equal(a.operators, b.operators, same);
}

// Layers are compared with as many before them, of which no two are alike: blocks that alternate
// are found, and layers that all differ cost no more than that.
constexpr std::size_t most_compared = 4;

}  // namespace

SegmentTable::SegmentTable(const LayerGraph& graph, std::uint16_t ranks)
    : graph_(graph), ranks_(ranks) {
  std::vector<std::size_t> kinds;
  std::size_t places = 0;
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    const auto end = kinds.size() > most_compared
                         ? kinds.rbegin() + static_cast<std::ptrdiff_t>(most_compared)
                         : kinds.rend();
    const auto known = std::find_if(kinds.rbegin(), end, [&](std::size_t k) {
      return are_alike(graph.layers[k], graph.layers[l]);
    });
    if (known != end) {
      first_place_.push_back(first_place_[*known]);
      continue;
    }
    kinds.push_back(l);
    first_place_.push_back(places);
    places += std::max<std::size_t>(graph.layers[l].operators.size(), 1);
  }
  memory_.resize(places * passes);
  kernels_.resize(places * passes * ranks_);
}

WorkId SegmentTable::kernels(PlanBuilder& plan, std::size_t layer, Pass pass,
                             const Segment& segment, std::uint16_t rank) {
  KnownKernels& known = kernels_[place(layer, pass, segment.first) * ranks_ + rank];
  if (known.last != segment.last) {
    known = {segment.last,
             plan.work(Compute{rank, kernels_of(graph_.layers[layer], pass, segment)})};
  }
  return known.work;
}

SegmentTable::ShortLived SegmentTable::short_lived(std::size_t layer, Pass pass, std::size_t first,
                                                   std::size_t last) {
  KnownMemory& known = memory_[place(layer, pass, first)];
  if (known.last == last) return known.memory;
  const Layer& of = graph_.layers[layer];
  known = {last, {}};
  for (std::size_t op = first; op <= last; ++op) {
    known.memory.workspace = std::max(known.memory.workspace, transient_of(of, pass, op));
    if (op >= of.operators.size()) continue;
    for (const Parameter& p : of.operators[op].parameters) known.memory.parameters += p.elements;
  }
  return known.memory;
}

}  // namespace tidegate
