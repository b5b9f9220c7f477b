#include "sim/policy/activations.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace tidegate {
namespace {

// A block is recomputed; embedding and head are not: Megatron and DeepSpeed checkpoint the repeated
// blocks alone.
bool is_recomputed(const LayerGraph& graph, std::size_t layer) {
  return graph.layers[layer].kind == LayerKind::block;
}

class FullRecompute final : public ActivationPolicy {
 public:
  FullRecompute(std::int64_t every, bool by_operator)
      : every_(static_cast<std::size_t>(every)), by_operator_(by_operator) {}

  std::vector<Visit> backward_order(const LayerGraph& graph, std::size_t first,
                                    std::size_t last) const override {
    std::vector<Visit> visits;
    for (std::size_t end = last; end > first;) {
      const std::size_t start = std::max(first, segment_start(graph, end - 1));
      for (std::size_t l = start; l < end && is_recomputed(graph, l); ++l)
        visits.push_back({l, Pass::recompute});
      for (std::size_t l = end; l-- > start;) visits.push_back({l, Pass::backward});
      end = start;
    }
    return visits;
  }

  void add(Step& step, const Visit& visit) override {
    if (by_operator_) return add_by_operator(step, visit);
    StageEffects& effects = step.stage_effects();
    const LayerGraph& graph = step.graph();
    const Layer& layer = graph.layers[visit.layer];
    if (visit.pass == Pass::forward) {
      if (!is_recomputed(graph, visit.layer)) {
        keep_until_backward(step, visit, "activations", storages_of(layer, Part::all), effects);
      } else if (starts_segment(step, visit.layer)) {
        keep_until_backward(step, visit, "checkpoints", layer.input, effects);
      }
      step.on_layer("forward", visit, effects);
    } else if (visit.pass == Pass::recompute) {
      // From here on the layer's input is among its saved tensors.
      if (starts_segment(step, visit.layer)) free_kept(step, visit, effects);
      keep_until_backward(step, visit, "recomputed activations", storages_of(layer, Part::all),
                          effects);
      step.on_layer("recompute", visit, effects);
    } else {
      free_kept(step, visit, effects);
      step.on_layer("backward", visit, effects);
    }
  }

  Bytes least_kept(const LayerGraph& graph) const override {
    Bytes kept;
    for (std::size_t l = 0; l < graph.layers.size() && !by_operator_; ++l) {
      if (!is_recomputed(graph, l)) {
        kept += graph.layers[l].saved();
      } else if (segment_start(graph, l) == l) {
        kept += graph.layers[l].input;
      }
    }
    return kept;
  }

  std::string describe() const override {
    return every_ == 1 ? "full recomputation"
                       : fmt::format("full recomputation of every {} layers", every_);
  }

 private:
  // Runs of blocks are cut into segments of `every_` from their first block on; the border of a
  // pipeline stage cuts as well.
  std::size_t segment_start(const LayerGraph& graph, std::size_t layer) const {
    if (!is_recomputed(graph, layer)) return layer;
    std::size_t first = layer;
    while (first > 0 && is_recomputed(graph, first - 1)) --first;
    return first + (layer - first) / every_ * every_;
  }

  bool starts_segment(const Step& step, std::size_t layer) const {
    const bool starts_piece =
        std::ranges::find(step.pieces(), layer, &Piece::first) != step.pieces().end();
    return starts_piece || segment_start(step.graph(), layer) == layer;
  }

  // Of a block, forward keeps at most its input, and that with the whole layer.
  void add_by_operator(Step& step, const Visit& visit) {
    const LayerGraph& graph = step.graph();
    if (visit.pass == Pass::backward) {
      free_by_operator(step, "backward", visit);
    } else if (visit.pass == Pass::recompute) {
      keep_by_operator(step, "recompute", visit, "recomputed activations");
    } else if (!is_recomputed(graph, visit.layer)) {
      keep_by_operator(step, "forward", visit, "activations");
    } else {
      StageEffects& effects = step.stage_effects();
      if (starts_segment(step, visit.layer)) {
        keep_until_backward(step, visit, "checkpoints", graph.layers[visit.layer].input, effects);
      }
      step.on_layer("forward", visit, effects);
    }
  }

  std::size_t every_;
  bool by_operator_;
};

class SelectiveRecompute final : public ActivationPolicy {
 public:
  std::vector<Visit> backward_order(const LayerGraph& graph, std::size_t first,
                                    std::size_t last) const override {
    std::vector<Visit> visits;
    for (std::size_t l = last; l-- > first;) {
      if (graph.layers[l].core_saved().value() > 0) visits.push_back({l, Pass::recompute_core});
      visits.push_back({l, Pass::backward});
    }
    return visits;
  }

  void add(Step& step, const Visit& visit) override {
    StageEffects& effects = step.stage_effects();
    const Layer& layer = step.graph().layers[visit.layer];
    if (visit.pass == Pass::forward) {
      keep_until_backward(step, visit, "activations", storages_of(layer, Part::outside_core),
                          effects);
      step.on_layer("forward", visit, effects);
    } else if (visit.pass == Pass::recompute_core) {
      keep_until_backward(step, visit, "recomputed activations", storages_of(layer, Part::core),
                          effects);
      step.on_layer("recompute attention", visit, effects);
    } else {
      free_kept(step, visit, effects);
      step.on_layer("backward", visit, effects);
    }
  }

  Bytes least_kept(const LayerGraph& graph) const override {
    Bytes kept;
    for (const Layer& layer : graph.layers) kept += layer.saved() - layer.core_saved();
    return kept;
  }

  std::string describe() const override { return "selective recomputation of the attention core"; }
};

}  // namespace

std::unique_ptr<ActivationPolicy> make_recompute(yaml::Map& options, const Machine&) {
  constexpr std::array<std::string_view, 2> modes = {"full", "selective"};
  const std::size_t mode = options.choice_or("mode", modes, 0);
  const std::int64_t every = options.count_or("every", 1, 1);
  const auto by_operator = options.find("by_operator");
  const bool is_by_operator = by_operator && by_operator->flag();
  if (mode == 0) return std::make_unique<FullRecompute>(every, is_by_operator);
  if (by_operator) by_operator->problem("applies to mode full; leave it out for selective");
  if (every != 1) options.at("every").problem("applies to mode full; leave it out for selective");
  return std::make_unique<SelectiveRecompute>();
}

}  // namespace tidegate
