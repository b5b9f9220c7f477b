#include "sim/offload/ahead.hpp"

#include <algorithm>

namespace tidegate {

std::size_t fetch_point(const TensorTrace& trace, const Move& move, Ahead ahead) {
  const std::size_t turn = trace.operators.size();
  std::size_t point = move.in_before > turn ? move.in_before - 1 : turn;
  if (ahead == Ahead::layer) {
    // Two layers' starts back: through the needing layer, then through the one that runs before.
    const auto layer = [&](std::size_t p) { return trace.operators[trace.operator_at(p)].layer; };
    point = move.in_before;
    for (int starts = 0; starts < 2; ++starts) {
      if (starts > 0 && point > turn) --point;
      while (point > turn && layer(point - 1) == layer(point)) --point;
    }
  }
  return std::clamp(point, move.out_after + 1, move.in_before);
}

void fetch_where_room(const TensorTrace& trace, std::vector<Move>& moves, Bytes line,
                      std::size_t floor) {
  std::vector<Bytes> curve = memory_curve(trace, moves);
  std::vector<std::size_t> order;
  for (const Move& move : moves)
    if (move.what == Move::What::offload) order.push_back(move.tensor);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return moves[i].in_at; });
  for (const std::size_t i : order) {
    const Bytes bytes = trace.tensors[i].bytes;
    std::size_t& point = moves[i].in_at;
    const std::size_t earliest = std::max(floor, moves[i].out_by + 1);
    while (point > earliest && curve[point - 1] + bytes <= line) curve[--point] += bytes;
  }
}

}  // namespace tidegate
