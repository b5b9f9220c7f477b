#include "sim/policy/keep_profile.hpp"

#include <algorithm>
#include <string_view>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

// Parts of a block: norms and residual sums belong to the block itself.
int part_of(const Operator& op) {
  const std::string_view name = op.name;
  const auto ends = [&](std::string_view tail) { return name.ends_with(tail); };
  if (ends("_residual") || (ends("_norm") && !ends("qk_norm"))) return 2;
  for (const std::string_view ffn : {"ffn", "activation", "router", "expert"}) {
    if (name.starts_with(ffn)) return 1;
  }
  return 0;
}

}  // namespace

// Attention of encoder and cross attention are one node.
std::size_t KeepProfile::node_of(const LayerGraph& graph, const Position& at) {
  const Layer& layer = graph.layers[at.layer];
  const int part = layer.kind == LayerKind::block ? part_of(layer.operators[at.op]) : 2;
  const auto found = std::ranges::find_if(
      nodes_, [&](const Node& n) { return n.first.layer == at.layer && n.part == part; });
  if (found != nodes_.end()) {
    found->last = at;
    return static_cast<std::size_t>(found - nodes_.begin());
  }
  nodes_.push_back({Bytes(0), at, at, part});
  return nodes_.size() - 1;
}

void KeepProfile::computed(const LayerGraph& graph, const Position& at, TaskId kernels) {
  operators_.push_back({node_of(graph, at), kernels});
}

void KeepProfile::stored(TaskId first, TaskId last, Bytes bytes) {
  ensure(!operators_.empty(), "what is stored has been computed");
  nodes_[operators_.back().node].volume += bytes;
  stores_.push_back({first, last, bytes});
}

std::optional<Position> KeepProfile::boundary(const Timeline& timeline,
                                              std::optional<BytesPerSecond> bandwidth,
                                              KeepSwitch flips) const {
  if (stores_.empty()) return std::nullopt;
  std::vector<std::size_t> order(nodes_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [this](std::size_t i) { return nodes_[i].last; });

  std::vector<Seconds> own(nodes_.size());
  Seconds forward;
  Instant before = timeline.start[index(operators_.front().kernels)];
  for (const Computed& c : operators_) {
    const Instant end = timeline.end[index(c.kernels)];
    own[c.node] += to_seconds(end - before);
    forward += to_seconds(end - before);
    before = end;
  }
  std::vector<ProfiledNode> nodes;
  for (const std::size_t i : order) nodes.push_back({nodes_[i].volume, own[i]});
  if (!bandwidth) {
    Bytes bytes;
    Instant first = timeline.start[index(stores_.front().first)], last = 0;
    for (const Store& s : stores_) {
      bytes += s.bytes;
      first = std::min(first, timeline.start[index(s.first)]);
      last = std::max(last, timeline.end[index(s.last)]);
    }
    bandwidth = measured_bandwidth(bytes, to_seconds(first), to_seconds(last));
  }
  const auto k = keep_boundary(nodes, forward, *bandwidth);
  if (!k) return std::nullopt;
  const Node& node = nodes_[order[*k]];
  if (flips == KeepSwitch::before_node) return node.first;
  return Position{node.last.layer, node.last.op + 1};
}

}  // namespace tidegate
