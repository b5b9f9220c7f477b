#include <algorithm>

#include "sim/offload/ahead.hpp"
#include "sim/offload/planners.hpp"

namespace tidegate {

MovePlan plan_swap_all(const TensorTrace& trace, const Rates& rates,
                       const SwapAllOptions& options) {
  check(trace);
  MovePlan plan{.moves = keep_all(trace), .forecast = {}};
  Bytes room = rates.host_capacity;
  for (Move& move : plan.moves) {
    const TensorTrace::Tensor& t = trace.tensors[move.tensor];
    if (!t.may_move) continue;
    if (options.where == Move::Where::host) {
      if (t.bytes > room) continue;
      room -= t.bytes;
    }
    offload(trace, move, options.where);
    move.in_at = fetch_point(trace, move, options.ahead);
  }
  const Seconds exposed = replay(trace, rates, plan.moves, options.layer_end);
  plan.forecast = forecast(trace, rates, plan.moves, exposed);
  return plan;
}

}  // namespace tidegate
