#include "sim/policy/module_order.hpp"

#include <utility>

namespace tidegate {

ModuleOrder::ModuleOrder(const LayerGraph& graph, std::vector<Piece> pieces)
    : pieces_(std::move(pieces)), piece_of_(graph.layers.size()), at_(graph.layers.size()) {
  for (std::size_t p = 0; p < pieces_.size(); ++p) {
    std::vector<Position> order;
    for (std::size_t l = pieces_[p].last; l-- > pieces_[p].first;) {
      piece_of_[l] = p;
      at_[l].resize(graph.layers[l].operators.size());
      for (std::size_t op = at_[l].size(); op-- > 0;) {
        at_[l][op] = order.size();
        order.push_back({l, op});
      }
    }
    order_.push_back(std::move(order));
  }
}

bool ModuleOrder::is_chunk_head(const Position& at, std::int64_t chunk) const {
  return at_[at.layer][at.op] % static_cast<std::size_t>(chunk) == 0;
}

std::vector<Position> ModuleOrder::rest_of_chunk(const Position& head, std::int64_t chunk) const {
  const auto& order = order_[piece_of_[head.layer]];
  std::vector<Position> rest;
  const std::size_t first = at_[head.layer][head.op];
  for (std::size_t i = 1; i < static_cast<std::size_t>(chunk) && first + i < order.size(); ++i) {
    rest.push_back(order[first + i]);
  }
  return rest;
}

}  // namespace tidegate
