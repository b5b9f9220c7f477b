#include "sim/offload/recompute.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace tidegate {

Recomputation::Recomputation(const TensorTrace& trace)
    : trace_(trace), layer_of_(trace.tensors.size()), is_candidate_(trace.tensors.size()) {
  std::map<std::size_t, std::vector<std::size_t>> by_layer;
  for (std::size_t i = 0; i < trace.tensors.size(); ++i)
    by_layer[trace.operators[trace.tensors[i].first].layer].push_back(i);
  for (auto& [number, layer] : by_layer) {
    std::ranges::stable_sort(layer, {}, [&](std::size_t i) { return trace.tensors[i].first; });
    const std::size_t start = trace.tensors[layer.front()].first;
    for (const std::size_t i : layer) {
      const TensorTrace::Tensor& t = trace.tensors[i];
      layer_of_[i] = layers_.size();
      is_candidate_[i] = t.may_move && t.can_recompute() && t.first > start;
    }
    layers_.push_back(std::move(layer));
  }
}

void Recomputation::settle(std::vector<Move>& moves, std::size_t tensor) const {
  settle_layer(moves, layer_of(tensor));
}

void Recomputation::settle(std::vector<Move>& moves) const {
  for (const std::vector<std::size_t>& layer : layers_) settle_layer(moves, layer);
}

void Recomputation::settle_layer(std::vector<Move>& moves,
                                 const std::vector<std::size_t>& layer) const {
  // From the layer's end to its start: `needed` is the earliest backward point of the run so far.
  const std::size_t none = trace_.points();
  std::size_t needed = none;
  std::vector<std::size_t> run;
  for (std::size_t end = layer.size(); end > 0;) {
    std::size_t begin = end - 1;
    const std::size_t op = trace_.tensors[layer[begin]].first;
    while (begin > 0 && trace_.tensors[layer[begin - 1]].first == op) --begin;
    bool is_recomputed = false;
    for (std::size_t k = begin; k < end; ++k) {
      const Move& move = moves[layer[k]];
      if (move.what != Move::What::recompute) continue;
      is_recomputed = true;
      needed = std::min(needed, trace_.needed_again(trace_.tensors[layer[k]]));
      run.push_back(layer[k]);
    }
    for (std::size_t k = begin; k < end; ++k) {
      Move& move = moves[layer[k]];
      if (move.what != Move::What::offload) continue;
      move.in_before = std::min(trace_.needed_again(trace_.tensors[layer[k]]), needed);
      move.in_at = std::min(move.in_at, move.in_before);
    }
    const bool reads_made = std::ranges::any_of(run, [&](std::size_t i) {
      return std::ranges::any_of(trace_.tensors[i].from, [&](std::size_t k) {
        return moves[k].what == Move::What::recompute && trace_.tensors[k].first < op;
      });
    });
    if (!is_recomputed && !reads_made) {
      for (const std::size_t i : run) moves[i].in_at = moves[i].in_before = needed;
      run.clear();
      needed = none;
    }
    end = begin;
  }
  bring_what_is_read(moves, layer);
}

void Recomputation::bring_what_is_read(std::vector<Move>& moves,
                                       const std::vector<std::size_t>& layer) const {
  for (const std::size_t i : layer) {
    if (moves[i].what != Move::What::recompute) continue;
    for (const std::size_t k : trace_.tensors[i].from) {
      if (moves[k].what != Move::What::offload) continue;
      moves[k].in_before = std::min(moves[k].in_before, moves[i].in_at);
      moves[k].in_at = std::min(moves[k].in_at, moves[k].in_before);
    }
  }
}

}  // namespace tidegate
