#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "models/base/units.hpp"

/// SSDTrain's adaptive keep: which activations are not worth writing (arXiv 2408.10013; rule as
/// K-Wu/FlashTrain at 668f553 runs it).
///
/// Nodes (layers, attentions, MLPs) stand in the order in which their forwards end. Up to node k,
/// everything is written; the rule asks for the bandwidth that this needs:
///
///   need_k = (sum_{j<k} V_j + 2 V_k) / (3 T - 2 sum_{j<k} t_j)
///
/// V_j saved bytes and t_j forward time of node j, T forward time of the whole micro-batch. The
/// bytes are all writes before k, k's own write, and k's read-back; the time is the forward and the
/// backward, twice as long, of node k and all behind it, with what of T belongs to no node. The
/// first k with need_k > B, the measured bandwidth, begins the kept region.
///
/// Laws, for any volumes and times (tests hold them):
///   - a lower B, or volumes larger by one factor, never moves the boundary back: the nodes with
///     need_k > B only become more. A longer T with the same t_j never moves it forward.
///   - volumes and B scaled together, or times and 1/B, change nothing.
///   - need_k rises with k where V_k >= V_(k-1)/2. Elsewhere it may fall: behind the boundary there
///     can be nodes that need less than B, and the rule keeps them all the same.
///   - equal nodes, T = L t, r = B t / V: the boundary is the smallest integer k >= 0 above
///     (3 L r - 2) / (1 + 2 r), and there is none while r >= (L+1)/(L+2).
///
/// The rule has limits of its own: it lets k's read-back end with k's backward, which needs the
/// bytes at its start, and does not ask when a write's bytes come to be.
namespace tidegate {

struct ProfiledNode {
  Bytes volume;     ///< saved for backward, each storage once
  Seconds forward;  ///< own forward, without the nodes before it
};

/// When the switch flips, at the boundary node k.
enum class KeepSwitch {
  before_node,  ///< as the paper describes it: node k is the first one kept
  after_node,   ///< as its code runs: flipped when k's forward has ended, k itself is written
};

/// need_k; infinite when no time is left for bytes, which happens only to input whose t_j before k
/// sum to 1.5 T or more. Throws std::logic_error on a k that is no node.
BytesPerSecond needed_bandwidth(std::span<const ProfiledNode> nodes, std::size_t k,
                                Seconds forward);

/// The first k with need_k > bandwidth, or none.
std::optional<std::size_t> keep_boundary(std::span<const ProfiledNode> nodes, Seconds forward,
                                         BytesPerSecond bandwidth);

/// The first node that is kept; nodes.size() when all are written.
std::size_t first_kept(std::span<const ProfiledNode> nodes, Seconds forward,
                       BytesPerSecond bandwidth, KeepSwitch flips);

/// B as it is measured: bytes stored, each storage once, from the start of the first store to the
/// end of the last one. Throws std::logic_error when that is no time.
BytesPerSecond measured_bandwidth(Bytes stored, Seconds first_store_start, Seconds last_store_end);

}  // namespace tidegate
