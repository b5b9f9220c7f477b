#pragma once

#include <array>

#include "sim/offload/calendar.hpp"
#include "sim/offload/moves.hpp"

/// When the transfers of given moves happen.
namespace tidegate {

/// The calendars of one GPU's link and drives, each direction on its own.
class Calendars {
 public:
  explicit Calendars(const Rates& rates);
  Calendars(const Calendars&) = delete;
  Calendars& operator=(const Calendars&) = delete;

  std::span<const Leg> out(Move::Where where) const;
  std::span<const Leg> in(Move::Where where) const;
  Seconds latency(Move::Where where) const;

 private:
  Rates rates_;
  std::array<Calendar, 4> calendars_;
  std::array<Leg, 2> out_, in_;  ///< link, drives
};

/// Latency and bytes over the rate of the narrowest leg: one transfer that nothing else slows.
Seconds alone(const Calendars& traffic, std::span<const Leg> legs, Move::Where where, Bytes bytes);

enum class LayerEnd : std::uint8_t {
  free,   ///< compute goes on while tensors leave
  waits,  ///< at the end of each layer's forward compute waits for what has to leave
};

/// Walks through the iteration with first-come transfers and returns how long compute waits.
///
/// A transfer out is requested when `out_after` has run, a fetch when `in_at` starts and the
/// tensor has left; both are served in the order of requests (equal ones in the order of
/// `in_before`), at the rates that are free then. Point `in_before` starts when its tensors are
/// there. Sets `out_by` of every offloaded tensor.
Seconds replay(const TensorTrace& trace, const Rates& rates, std::vector<Move>& moves,
               LayerEnd layer_end = LayerEnd::free);

}  // namespace tidegate
