#pragma once

#include <compare>
#include <cstddef>
#include <vector>

#include "sim/graph/layer_graph.hpp"
#include "sim/policy/step.hpp"

namespace tidegate {

/// An operator's place in the order of forward.
struct Position {
  std::size_t layer = 0, op = 0;
  auto operator<=>(const Position&) const = default;
};

/// The operators of each piece of a network in the order of backward, which is that of forward
/// reversed, cut into chunks from the piece's end.
class ModuleOrder {
 public:
  ModuleOrder() = default;
  ModuleOrder(const LayerGraph& graph, std::vector<Piece> pieces);

  std::size_t pieces() const { return pieces_.size(); }
  const Piece& piece(std::size_t p) const { return pieces_[p]; }
  std::size_t piece_of(std::size_t layer) const { return piece_of_[layer]; }
  Position first_of(std::size_t piece) const { return {pieces_[piece].first, 0}; }
  bool is_first_layer(std::size_t layer) const { return pieces_[piece_of_[layer]].first == layer; }
  bool is_chunk_head(const Position& at, std::int64_t chunk) const;
  /// What follows a chunk's head in backward.
  std::vector<Position> rest_of_chunk(const Position& head, std::int64_t chunk) const;

 private:
  std::vector<Piece> pieces_;
  std::vector<std::size_t> piece_of_;         // by layer
  std::vector<std::vector<Position>> order_;  // by piece: backward
  std::vector<std::vector<std::size_t>> at_;  // by layer and operator: place in order_
};

}  // namespace tidegate
