#pragma once

#include "sim/offload/replay.hpp"

/// Moves whose two transfers fit between forward and backward use, on what bandwidth is left.
namespace tidegate {

class HiddenMoves {
 public:
  HiddenMoves(const TensorTrace& trace, const Rates& rates);

  const std::vector<Seconds>& axis() const { return axis_; }
  const Calendars& traffic() const { return traffic_; }

  /// From the end of `out_after` to the start of `in_before`.
  Seconds interval(const Move& move) const;
  /// One transfer with nothing else on its way.
  Seconds out_alone(Move::Where where, Bytes bytes) const;
  Seconds in_alone(Move::Where where, Bytes bytes) const;
  /// When `bytes` have left at the earliest, and when their return begins at the latest, as booked
  /// so far. `late` is none where the return would begin before the end of `out_after`.
  Booking early_out(const Move& move, Bytes bytes) const;
  std::optional<Booking> late_in(const Move& move, Bytes bytes, Seconds earliest) const;

  /// Books the write as early and the read as late as bandwidth allows and sets `out_by` and
  /// `in_at`. False, with nothing booked and `move` unchanged, when they overlap or when no point
  /// would be without the tensor.
  bool book(Move& move);
  /// Gives the bandwidth of a booked move back.
  void cancel(const Move& move);
  /// Books the reads of moves again whose `in_before` came forward. False, with nothing changed,
  /// when one no longer fits; the caller then takes `in_before` back.
  bool rebook(std::span<Move* const> moves);

 private:
  void set_fetch(Move& move, const Booking& in) const;

  const TensorTrace& trace_;
  std::vector<Seconds> axis_;
  Calendars traffic_;
  std::vector<Booking> out_, in_;  // per tensor; empty where not booked
};

}  // namespace tidegate
