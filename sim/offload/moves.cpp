#include "sim/offload/moves.hpp"

#include <algorithm>

namespace tidegate {

std::vector<Move> keep_all(const TensorTrace& trace) {
  std::vector<Move> moves(trace.tensors.size());
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const TensorTrace::Tensor& t = trace.tensors[i];
    moves[i] = {.tensor = i,
                .out_after = t.last,
                .out_by = t.last,
                .in_at = trace.needed_again(t),
                .in_before = trace.needed_again(t)};
  }
  return moves;
}

void offload(const TensorTrace& trace, Move& move, Move::Where where) {
  const TensorTrace::Tensor& t = trace.tensors[move.tensor];
  move.what = Move::What::offload;
  move.where = where;
  move.out_after = move.out_by = t.last;
  move.in_at = move.in_before = trace.needed_again(t);
}

std::vector<Bytes> memory_curve(const TensorTrace& trace, const std::vector<Move>& moves) {
  // Changes at the start of each point, then their running sum.
  std::vector<Bytes> curve(trace.points() + 1);
  std::vector<Bytes> transient = trace.transient;
  for (const Move& move : moves) {
    const TensorTrace::Tensor& t = trace.tensors[move.tensor];
    curve[t.first] += t.bytes;
    curve[trace.freed_after(t) + 1] -= t.bytes;
    if (move.what == Move::What::keep) continue;
    if (move.what == Move::What::recompute)
      transient[move.in_at] = std::max(transient[move.in_at], trace.transient[t.first]);
    if (move.in_at <= move.out_by) continue;
    curve[move.out_by + 1] -= t.bytes;
    curve[move.in_at] += t.bytes;
  }
  for (std::size_t p = 1; p < curve.size(); ++p) curve[p] += curve[p - 1];
  curve.pop_back();
  for (std::size_t p = 0; p < curve.size(); ++p) curve[p] += trace.standing + transient[p];
  return curve;
}

Bytes host_bytes(const TensorTrace& trace, const std::vector<Move>& moves) {
  Bytes sum;
  for (const Move& move : moves)
    if (move.what == Move::What::offload && move.where == Move::Where::host)
      sum += trace.tensors[move.tensor].bytes;
  return sum;
}

Seconds recompute_time(const TensorTrace& trace, const std::vector<Move>& moves) {
  Seconds sum;
  for (const Move& move : moves)
    if (move.what == Move::What::recompute) sum += trace.tensors[move.tensor].recompute;
  return sum;
}

Forecast forecast(const TensorTrace& trace, const Rates& rates, const std::vector<Move>& moves,
                  Seconds exposed) {
  const std::vector<Bytes> curve = memory_curve(trace, moves);
  const auto peak = std::ranges::max_element(curve);
  Forecast f;
  if (peak != curve.end()) f.gpu_peak = *peak;
  f.peak_point = static_cast<std::size_t>(peak - curve.begin());
  f.host_peak = host_bytes(trace, moves);
  f.fits = f.gpu_peak <= rates.gpu_capacity && f.host_peak <= rates.host_capacity;
  f.exposed = exposed;
  f.recompute = recompute_time(trace, moves);
  return f;
}

}  // namespace tidegate
