#pragma once

#include <cstddef>
#include <vector>

#include "sim/graph/layer_graph.hpp"
#include "sim/policy/layout.hpp"

namespace tidegate {

/// The layers of the pieces of a network: chunk c of stage s is piece c · stages + s, whose
/// repeated blocks are divided as evenly as they go, earlier pieces first; what stands before
/// (behind) the blocks belongs to the first (last) piece, what stands between two blocks to the
/// piece of the later one.
struct Piece {
  std::size_t first = 0, last = 0;  ///< layers, last excluded
  bool operator==(const Piece&) const = default;
};
std::vector<Piece> pieces_of(const LayerGraph& graph, const Parallel& parallel);

/// The layers of a stage's pieces alone, in the order of the network.
LayerGraph stage_graph(const LayerGraph& graph, const std::vector<Piece>& pieces, std::size_t stage,
                       std::size_t stages);

}  // namespace tidegate
