#pragma once

#include <array>
#include <vector>

#include "sim/offload/hidden.hpp"

/// How much a move would take off a memory curve where it is above a line.
namespace tidegate {

/// A snapshot of curve and bookings, point by point, that answers in logarithmic time:
///
///   relief = bytes * (time above the line between half written and half read back)
///
/// Writes are as early, reads as late as free bandwidth allows; within a point both memory and free
/// bandwidth are even.
class Relief {
 public:
  Relief(const HiddenMoves& hidden, const std::vector<Bytes>& curve, Bytes line);

  bool is_above() const { return above_.back() > Seconds(); }
  /// Bytes * seconds; 0 where the transfers would overlap.
  double of(const Move& move, Bytes bytes) const;

 private:
  const HiddenMoves* hidden_;   // whose bookings these are
  std::vector<Seconds> above_;  ///< time above the line up to each point
  std::array<std::vector<Bytes>, 2> out_,
      in_;  ///< by Where: bytes that could move up to each point
};

}  // namespace tidegate
