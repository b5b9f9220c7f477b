#include "sim/offload/hidden.hpp"

#include <algorithm>

namespace tidegate {

HiddenMoves::HiddenMoves(const TensorTrace& trace, const Rates& rates)
    : trace_(trace),
      axis_(time_axis(trace)),
      traffic_(rates),
      out_(trace.tensors.size()),
      in_(trace.tensors.size()) {}

Seconds HiddenMoves::interval(const Move& move) const {
  return axis_[move.in_before] - axis_[move.out_after + 1];
}

Seconds HiddenMoves::out_alone(Move::Where where, Bytes bytes) const {
  return alone(traffic_, traffic_.out(where), where, bytes);
}

Seconds HiddenMoves::in_alone(Move::Where where, Bytes bytes) const {
  return alone(traffic_, traffic_.in(where), where, bytes);
}

Booking HiddenMoves::early_out(const Move& move, Bytes bytes) const {
  const Seconds first_byte = axis_[move.out_after + 1] + traffic_.latency(move.where);
  return book_from(traffic_.out(move.where), first_byte, bytes);
}

std::optional<Booking> HiddenMoves::late_in(const Move& move, Bytes bytes, Seconds earliest) const {
  return book_until(traffic_.in(move.where), axis_[move.in_before], bytes,
                    earliest + traffic_.latency(move.where));
}

bool HiddenMoves::book(Move& move) {
  const Bytes bytes = trace_.tensors[move.tensor].bytes;
  const Booking out = early_out(move, bytes);
  const std::optional<Booking> in = late_in(move, bytes, out.end());
  if (!in) return false;
  Move booked = move;
  const auto gone = std::ranges::lower_bound(axis_, out.end()) - axis_.begin();
  booked.out_by = std::max(move.out_after, static_cast<std::size_t>(gone) - 1);
  set_fetch(booked, *in);
  if (booked.in_at <= booked.out_by + 1) return false;
  take(traffic_.out(move.where), out);
  take(traffic_.in(move.where), *in);
  out_[move.tensor] = out;
  in_[move.tensor] = *in;
  move = booked;
  return true;
}

void HiddenMoves::cancel(const Move& move) {
  give_back(traffic_.out(move.where), out_[move.tensor]);
  give_back(traffic_.in(move.where), in_[move.tensor]);
}

bool HiddenMoves::rebook(std::span<Move* const> moves) {
  for (const Move* move : moves) give_back(traffic_.in(move->where), in_[move->tensor]);
  std::vector<Booking> booked;
  for (const Move* move : moves) {
    const std::optional<Booking> in =
        late_in(*move, trace_.tensors[move->tensor].bytes, out_[move->tensor].end());
    if (!in) break;
    take(traffic_.in(move->where), *in);
    booked.push_back(*in);
  }
  if (booked.size() < moves.size()) {
    for (std::size_t k = 0; k < booked.size(); ++k)
      give_back(traffic_.in(moves[k]->where), booked[k]);
    for (const Move* move : moves) take(traffic_.in(move->where), in_[move->tensor]);
    return false;
  }
  for (std::size_t k = 0; k < moves.size(); ++k) {
    in_[moves[k]->tensor] = booked[k];
    set_fetch(*moves[k], booked[k]);
  }
  return true;
}

void HiddenMoves::set_fetch(Move& move, const Booking& in) const {
  const std::size_t request = point_at(axis_, in.begin() - traffic_.latency(move.where));
  move.in_at = std::clamp(request, move.out_after + 1, move.in_before);
}

}  // namespace tidegate
