#include <algorithm>

#include "sim/offload/ahead.hpp"
#include "sim/offload/planners.hpp"

namespace tidegate {
namespace {

// The most that one point needs beside the tensors that only wait.
Bytes most_in_use(const TensorTrace& trace) {
  std::vector<Bytes> used(trace.points() + 1);
  for (const TensorTrace::Tensor& t : trace.tensors) {
    used[t.first] += t.bytes;
    used[t.last + 1] -= t.bytes;
    used[trace.needed_again(t)] += t.bytes;
    used[trace.freed_after(t) + 1] -= t.bytes;
  }
  Bytes most;
  Bytes sum;
  for (std::size_t p = 0; p < trace.points(); ++p) {
    sum += used[p];
    most = std::max(most, sum + trace.transient[p]);
  }
  return most;
}

}  // namespace

MovePlan plan_flash_neuron(const TensorTrace& trace, const Rates& rates) {
  check(trace);
  MovePlan plan{.moves = keep_all(trace), .forecast = {}};
  const Bytes line = rates.gpu_capacity - trace.standing - most_in_use(trace);
  Bytes rest;
  std::vector<std::size_t> order;
  for (const Move& move : plan.moves) {
    rest += trace.tensors[move.tensor].bytes;
    if (trace.tensors[move.tensor].may_move) order.push_back(move.tensor);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return trace.tensors[i].first; });
  if (forecast(trace, rates, plan.moves, {}).fits) order.clear();
  for (const std::size_t i : order) {
    if (rest <= line) break;
    offload(trace, plan.moves[i], Move::Where::storage);
    rest -= trace.tensors[i].bytes;
  }
  // Fetches have room when writes are done, which a first walk without early fetches says.
  replay(trace, rates, plan.moves);
  fetch_where_room(trace, plan.moves, rates.gpu_capacity, trace.operators.size());
  const Seconds exposed = replay(trace, rates, plan.moves);
  plan.forecast = forecast(trace, rates, plan.moves, exposed);
  return plan;
}

}  // namespace tidegate
