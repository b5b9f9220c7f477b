#include "sim/policy/pieces.hpp"

#include <algorithm>

namespace tidegate {

std::vector<Piece> pieces_of(const LayerGraph& graph, const Parallel& parallel) {
  const auto count = static_cast<std::size_t>(parallel.pipeline * parallel.chunks);
  const auto is_block = [](const Layer& l) { return l.kind == LayerKind::block; };
  const auto blocks = static_cast<std::size_t>(std::ranges::count_if(graph.layers, is_block));
  std::vector<Piece> pieces;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t wanted = blocks / count + (i < blocks % count ? 1 : 0);
    Piece piece{at, at};
    for (; wanted > 0; ++at) wanted -= is_block(graph.layers[at]) ? 1U : 0U;
    piece.last = i + 1 == count ? graph.layers.size() : at;
    pieces.push_back(piece);
  }
  return pieces;
}

LayerGraph stage_graph(const LayerGraph& graph, const std::vector<Piece>& pieces, std::size_t stage,
                       std::size_t stages) {
  LayerGraph part = graph;
  part.layers.clear();
  for (std::size_t i = stage; i < pieces.size(); i += stages) {
    part.layers.insert(part.layers.end(),
                       graph.layers.begin() + static_cast<std::ptrdiff_t>(pieces[i].first),
                       graph.layers.begin() + static_cast<std::ptrdiff_t>(pieces[i].last));
  }
  return part;
}

}  // namespace tidegate
