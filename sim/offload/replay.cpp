#include "sim/offload/replay.hpp"

#include <algorithm>

namespace tidegate {

Calendars::Calendars(const Rates& rates) : rates_(rates) {
  out_ = {Leg{&calendars_[0], rates.out_host}, Leg{&calendars_[1], rates.out_storage}};
  in_ = {Leg{&calendars_[2], rates.in_host}, Leg{&calendars_[3], rates.in_storage}};
}

std::span<const Leg> Calendars::out(Move::Where where) const {
  return {out_.data(), where == Move::Where::storage ? 2U : 1U};
}

std::span<const Leg> Calendars::in(Move::Where where) const {
  return {in_.data(), where == Move::Where::storage ? 2U : 1U};
}

Seconds Calendars::latency(Move::Where where) const {
  return where == Move::Where::host ? rates_.latency_host : rates_.latency_storage;
}

Seconds alone(const Calendars& traffic, std::span<const Leg> legs, Move::Where where, Bytes bytes) {
  BytesPerSecond rate = legs.front().peak;
  for (const Leg& leg : legs) rate = std::min(rate, leg.peak);
  return traffic.latency(where) + bytes / rate;
}

namespace {

class Replay {
 public:
  Replay(const TensorTrace& trace, const Rates& rates, std::vector<Move>& moves)
      : trace_(trace),
        moves_(moves),
        traffic_(rates),
        leaves_(trace.points()),
        fetched_(trace.points()),
        starts_(trace.points()),
        left_(moves.size()),
        ready_(trace.points()) {
    for (const Move& move : moves) {
      if (move.what == Move::What::keep) continue;
      if (move.what == Move::What::offload) leaves_[move.out_after].push_back(move.tensor);
      fetched_[move.in_at].push_back(move.tensor);
    }
    for (std::vector<std::size_t>& fetches : fetched_)
      std::ranges::stable_sort(fetches, {}, [&](std::size_t i) { return moves_[i].in_before; });
  }

  Seconds run(LayerEnd layer_end) {
    Seconds waited;
    for (std::size_t p = 0; p < trace_.points(); ++p) {
      Seconds again;
      for (const std::size_t i : fetched_[p]) again += fetch(i);
      if (ready_[p] > clock_) {
        waited += ready_[p] - clock_;
        clock_ = ready_[p];
      }
      starts_[p] = clock_;
      const TensorTrace::Operator& op = trace_.operators[trace_.operator_at(p)];
      clock_ += again + (p < trace_.operators.size() ? op.forward : op.backward);
      for (const std::size_t i : leaves_[p]) leave(i);
      if (layer_end == LayerEnd::waits && ends_layer(p) && leaving_ > clock_) {
        waited += leaving_ - clock_;
        clock_ = leaving_;
      }
    }
    for (Move& move : moves_)
      if (move.what == Move::What::offload) move.out_by = point_of(left_[move.tensor], move);
    return waited;
  }

 private:
  void leave(std::size_t i) {
    const auto legs = traffic_.out(moves_[i].where);
    const Booking out =
        book_from(legs, clock_ + traffic_.latency(moves_[i].where), trace_.tensors[i].bytes);
    take(legs, out);
    left_[i] = out.end();
    leaving_ = std::max(leaving_, out.end());
  }

  // Returns the time of running again where the tensor is recomputed.
  Seconds fetch(std::size_t i) {
    const Move& move = moves_[i];
    if (move.what == Move::What::recompute) return trace_.tensors[i].recompute;
    const auto legs = traffic_.in(move.where);
    const Seconds requested = std::max(clock_, left_[i]) + traffic_.latency(move.where);
    const Booking in = book_from(legs, requested, trace_.tensors[i].bytes);
    take(legs, in);
    ready_[move.in_before] = std::max(ready_[move.in_before], in.end());
    return {};
  }

  bool ends_layer(std::size_t p) const {
    const std::size_t n = trace_.operators.size();
    return p + 1 == n || (p < n && trace_.operators[p].layer != trace_.operators[p + 1].layer);
  }

  // The point during or right before which `time` falls: the tensor is there until its end.
  std::size_t point_of(Seconds time, const Move& move) const {
    const auto after = std::ranges::lower_bound(starts_, time);
    const auto point = static_cast<std::size_t>(after - starts_.begin());
    return std::max(move.out_after, point == 0 ? 0 : point - 1);
  }

  const TensorTrace& trace_;
  std::vector<Move>& moves_;
  Calendars traffic_;
  std::vector<std::vector<std::size_t>> leaves_, fetched_;  // per point: tensors
  std::vector<Seconds> starts_;
  std::vector<Seconds> left_;   // per tensor
  std::vector<Seconds> ready_;  // per point: when all that it needs has come back
  Seconds clock_, leaving_;
};

}  // namespace

Seconds replay(const TensorTrace& trace, const Rates& rates, std::vector<Move>& moves,
               LayerEnd layer_end) {
  return Replay(trace, rates, moves).run(layer_end);
}

}  // namespace tidegate
