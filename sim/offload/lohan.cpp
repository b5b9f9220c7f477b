#include <algorithm>
#include <limits>

#include "sim/offload/ahead.hpp"
#include "sim/offload/planners.hpp"
#include "sim/offload/recompute.hpp"

namespace tidegate {
namespace {

// The movable tensors in the order in which they are swapped, and how many of them must be.
struct Order {
  std::vector<std::size_t> tensors;
  std::size_t must = 0;
};

Order swap_order(const TensorTrace& trace, const Recomputation& recomputation) {
  const auto seconds_per_byte = [&](std::size_t i) {
    return recomputation.is_candidate(i)
               ? trace.tensors[i].recompute.value() / trace.tensors[i].bytes.value()
               : std::numeric_limits<double>::infinity();
  };
  Order order;
  for (std::size_t i = 0; i < trace.tensors.size(); ++i) {
    if (!trace.tensors[i].may_move) continue;
    order.tensors.push_back(i);
    if (!recomputation.is_candidate(i)) ++order.must;
  }
  std::ranges::stable_sort(order.tensors, std::ranges::greater{}, seconds_per_byte);
  return order;
}

// Where swapped tensors go when they come one after the other: host while each has room.
class Store {
 public:
  explicit Store(Bytes room) : room_(room) {}
  Move::Where add(Bytes bytes) {
    if (bytes > room_) return Move::Where::storage;
    room_ -= bytes;
    return Move::Where::host;
  }

 private:
  Bytes room_;
};

// What the GPU does and what moves, in one phase.
struct Phase {
  Seconds gpu;
  LohanOptions::Load load;

  Seconds slowest(const Rates& rates) const {
    return std::max(
        {gpu, load.cpu, load.link_out / rates.out_host, load.link_in / rates.in_host,
         load.storage_written / rates.out_storage + load.storage_read / rates.in_storage});
  }
};

Phase together(const Phase& a, const Phase& b) {
  return {
      a.gpu + b.gpu,
      {a.load.cpu + b.load.cpu, a.load.link_out + b.load.link_out, a.load.link_in + b.load.link_in,
       a.load.storage_written + b.load.storage_written, a.load.storage_read + b.load.storage_read}};
}

std::vector<LohanChoice> choices(const TensorTrace& trace, const Rates& rates,
                                 const LohanOptions& options, const Recomputation& recomputation,
                                 const Order& order) {
  Phase forward{{}, options.forward}, backward{{}, options.backward};
  for (const TensorTrace::Operator& op : trace.operators) {
    forward.gpu += op.forward;
    backward.gpu += op.backward;
  }
  for (const std::size_t i : order.tensors)
    if (recomputation.is_candidate(i)) backward.gpu += trace.tensors[i].recompute;
  Store store(rates.host_capacity);
  std::vector<LohanChoice> all;
  for (std::size_t k = 0; k <= order.tensors.size(); ++k) {
    if (k > 0) {
      const std::size_t i = order.tensors[k - 1];
      const Bytes bytes = trace.tensors[i].bytes;
      if (recomputation.is_candidate(i)) backward.gpu -= trace.tensors[i].recompute;
      forward.load.link_out += bytes;
      backward.load.link_in += bytes;
      if (store.add(bytes) == Move::Where::storage) {
        forward.load.storage_written += bytes;
        backward.load.storage_read += bytes;
      }
    }
    if (k < order.must) continue;
    const Seconds time = options.phases == LohanOptions::Phases::together
                             ? together(forward, backward).slowest(rates)
                             : forward.slowest(rates) + backward.slowest(rates);
    all.push_back({k, time});
  }
  return all;
}

}  // namespace

std::vector<LohanChoice> lohan_choices(const TensorTrace& trace, const Rates& rates,
                                       const LohanOptions& options) {
  check(trace);
  const Recomputation recomputation(trace);
  return choices(trace, rates, options, recomputation, swap_order(trace, recomputation));
}

MovePlan plan_lohan(const TensorTrace& trace, const Rates& rates, const LohanOptions& options) {
  check(trace);
  const Recomputation recomputation(trace);
  const Order order = swap_order(trace, recomputation);
  const std::vector<LohanChoice> all = choices(trace, rates, options, recomputation, order);
  const LohanChoice& best = *std::ranges::min_element(all, {}, &LohanChoice::time);

  MovePlan plan{.moves = keep_all(trace), .forecast = {}};
  Store store(rates.host_capacity);
  for (std::size_t k = 0; k < order.tensors.size(); ++k) {
    Move& move = plan.moves[order.tensors[k]];
    if (k < best.swapped) {
      offload(trace, move, store.add(trace.tensors[move.tensor].bytes));
    } else {
      move.what = Move::What::recompute;
    }
  }
  recomputation.settle(plan.moves);
  for (Move& move : plan.moves)
    if (move.what == Move::What::offload) move.in_at = fetch_point(trace, move, options.ahead);
  const Seconds exposed = replay(trace, rates, plan.moves);
  plan.forecast = forecast(trace, rates, plan.moves, exposed);
  return plan;
}

}  // namespace tidegate
