#include "sim/policy/adaptive_keep.hpp"

#include <limits>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

// What stands before a node.
struct Before {
  Bytes volume;
  Seconds forward;

  void pass(const ProfiledNode& node) {
    volume += node.volume;
    forward += node.forward;
  }
};

BytesPerSecond need(const Before& before, const ProfiledNode& node, Seconds forward) {
  const Bytes bytes = before.volume + 2 * node.volume;
  const Seconds time = 3 * forward - 2 * before.forward;
  if (bytes <= Bytes(0)) return BytesPerSecond(0);
  if (time <= Seconds(0)) return BytesPerSecond(std::numeric_limits<double>::infinity());
  return bytes / time;
}

}  // namespace

BytesPerSecond needed_bandwidth(std::span<const ProfiledNode> nodes, std::size_t k,
                                Seconds forward) {
  ensure(k < nodes.size(), "the needed bandwidth is that of a node");
  Before before;
  for (const ProfiledNode& node : nodes.first(k)) before.pass(node);
  return need(before, nodes[k], forward);
}

std::optional<std::size_t> keep_boundary(std::span<const ProfiledNode> nodes, Seconds forward,
                                         BytesPerSecond bandwidth) {
  Before before;
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (need(before, nodes[k], forward) > bandwidth) return k;
    before.pass(nodes[k]);
  }
  return {};
}

std::size_t first_kept(std::span<const ProfiledNode> nodes, Seconds forward,
                       BytesPerSecond bandwidth, KeepSwitch flips) {
  const auto boundary = keep_boundary(nodes, forward, bandwidth);
  if (!boundary) return nodes.size();
  return flips == KeepSwitch::before_node ? *boundary : *boundary + 1;
}

BytesPerSecond measured_bandwidth(Bytes stored, Seconds first_store_start, Seconds last_store_end) {
  ensure(last_store_end > first_store_start, "stores end after they start");
  return stored / (last_store_end - first_store_start);
}

}  // namespace tidegate
