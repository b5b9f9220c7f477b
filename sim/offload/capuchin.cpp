#include <algorithm>

#include "sim/offload/hidden.hpp"
#include "sim/offload/planners.hpp"
#include "sim/offload/recompute.hpp"

namespace tidegate {
namespace {

class Capuchin {
 public:
  Capuchin(const TensorTrace& trace, const Rates& rates)
      : trace_(trace),
        rates_(rates),
        hidden_(trace, rates),
        recomputation_(trace),
        moves_(keep_all(trace)) {
    for (const Move& move : moves_)
      if (trace.tensors[move.tensor].may_move) by_free_time_.push_back(move.tensor);
    std::ranges::stable_sort(by_free_time_, std::ranges::greater{},
                             [&](std::size_t i) { return free_time(i); });
    curve_ = memory_curve(trace, moves_);
  }

  void swap_hidden() {
    for (const std::size_t i : by_free_time_) {
      if (fits()) return;
      const Move kept = moves_[i];
      if (free_time(i) < Seconds() || !has_room(i)) continue;
      offload(trace_, moves_[i], Move::Where::host);
      if (swap(i)) {
        host_used_ += trace_.tensors[i].bytes;
        curve_ = memory_curve(trace_, moves_);
      } else {
        moves_[i] = kept;
      }
    }
  }

  void recompute() {
    std::vector<std::size_t> order;
    for (const std::size_t i : by_free_time_)
      if (recomputation_.is_candidate(i)) order.push_back(i);
    const auto seconds_per_byte = [&](std::size_t i) {
      return trace_.tensors[i].recompute.value() / trace_.tensors[i].bytes.value();
    };
    std::ranges::sort(order);
    std::ranges::stable_sort(order, {}, seconds_per_byte);
    for (const std::size_t i : order) {
      if (fits()) return;
      if (moves_[i].what == Move::What::keep && relieves(i)) try_recompute(i);
    }
  }

  // Returns how long these swaps make compute wait.
  Seconds swap_exposed() {
    if (fits()) return {};
    for (const std::size_t i : by_free_time_) {
      if (fits()) break;
      if (moves_[i].what != Move::What::keep || !has_room(i) || !relieves(i)) continue;
      const Move kept = moves_[i];
      offload(trace_, moves_[i], Move::Where::host);
      recomputation_.settle(moves_, i);
      if (!relieves(i)) {  // a source that must be back before
        moves_[i] = kept;
        continue;
      }
      host_used_ += trace_.tensors[i].bytes;
      curve_ = memory_curve(trace_, moves_);
    }
    return replay(trace_, rates_, moves_);
  }

  MovePlan plan(Seconds exposed) && {
    const Forecast expected = forecast(trace_, rates_, moves_, exposed);
    return {std::move(moves_), expected};
  }

 private:
  Seconds free_time(std::size_t i) const {
    Move move = moves_[i];
    offload(trace_, move, Move::Where::host);
    const Bytes bytes = trace_.tensors[i].bytes;
    return hidden_.interval(move) - hidden_.out_alone(move.where, bytes) -
           hidden_.in_alone(move.where, bytes);
  }

  bool has_room(std::size_t i) const {
    return host_used_ + trace_.tensors[i].bytes <= rates_.host_capacity;
  }

  bool fits() const {
    return std::ranges::all_of(curve_, [&](Bytes b) { return b <= rates_.gpu_capacity; });
  }

  bool swap(std::size_t i) {
    if (!relieves(i) || !hidden_.book(moves_[i])) return false;
    if (relieves(i)) return true;
    hidden_.cancel(moves_[i]);
    return false;
  }

  // A point above capacity lies where the tensor is, or could be, away.
  bool relieves(std::size_t i) const {
    for (std::size_t p = moves_[i].out_by + 1; p < moves_[i].in_at; ++p)
      if (curve_[p] > rates_.gpu_capacity) return true;
    return false;
  }

  // Takes the decision back when a swapped source could not return in time, hidden.
  void try_recompute(std::size_t i) {
    const std::vector<std::size_t>& layer = recomputation_.layer_of(i);
    std::vector<Move> before;
    for (const std::size_t k : layer) before.push_back(moves_[k]);
    moves_[i].what = Move::What::recompute;
    recomputation_.settle(moves_, i);
    std::vector<Move*> sources;
    for (const Move& old : before) {
      Move& move = moves_[old.tensor];
      if (move.what == Move::What::offload && move.in_before != old.in_before)
        sources.push_back(&move);
    }
    if (!hidden_.rebook(sources))
      for (const Move& old : before) moves_[old.tensor] = old;
    curve_ = memory_curve(trace_, moves_);
  }

  const TensorTrace& trace_;
  const Rates& rates_;
  HiddenMoves hidden_;
  Recomputation recomputation_;
  std::vector<Move> moves_;
  std::vector<std::size_t> by_free_time_;
  std::vector<Bytes> curve_;
  Bytes host_used_;
};

}  // namespace

MovePlan plan_capuchin(const TensorTrace& trace, const Rates& rates) {
  check(trace);
  Capuchin capuchin(trace, rates);
  capuchin.swap_hidden();
  capuchin.recompute();
  const Seconds exposed = capuchin.swap_exposed();
  return std::move(capuchin).plan(exposed);
}

}  // namespace tidegate
