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
  explicit FullRecompute(std::int64_t every) : every_(static_cast<std::size_t>(every)) {}

  std::vector<Visit> backward_order(const LayerGraph& graph) const override {
    std::vector<Visit> visits;
    for (std::size_t end = graph.layers.size(); end > 0;) {
      const std::size_t start = segment_start(graph, end - 1);
      for (std::size_t l = start; l < end && is_recomputed(graph, l); ++l)
        visits.push_back({l, Pass::recompute});
      for (std::size_t l = end; l-- > start;) visits.push_back({l, Pass::backward});
      end = start;
    }
    return visits;
  }

  void add(Step& step, const Visit& visit) const override {
    std::vector<std::vector<Effect>> effects(step.ranks());
    const LayerGraph& graph = step.graph();
    const Layer& layer = graph.layers[visit.layer];
    if (visit.pass == Pass::forward) {
      if (!is_recomputed(graph, visit.layer)) {
        keep_until_backward(step, visit.layer, "activations", layer.saved(), effects);
      } else if (segment_start(graph, visit.layer) == visit.layer) {
        keep_until_backward(step, visit.layer, "checkpoints", layer.input, effects);
      }
      step.on_layer("forward", visit, std::move(effects));
    } else if (visit.pass == Pass::recompute) {
      // From here on the layer's input is among its saved tensors.
      if (segment_start(graph, visit.layer) == visit.layer) free_kept(step, visit.layer, effects);
      keep_until_backward(step, visit.layer, "recomputed activations", layer.saved(), effects);
      step.on_layer("recompute", visit, std::move(effects));
    } else {
      free_kept(step, visit.layer, effects);
      step.on_layer("backward", visit, std::move(effects));
    }
  }

  std::string describe() const override {
    return every_ == 1 ? "full recomputation"
                       : fmt::format("full recomputation of every {} layers", every_);
  }

 private:
  // Runs of blocks are cut into segments of `every_` from their first block on.
  std::size_t segment_start(const LayerGraph& graph, std::size_t layer) const {
    if (!is_recomputed(graph, layer)) return layer;
    std::size_t first = layer;
    while (first > 0 && is_recomputed(graph, first - 1)) --first;
    return first + (layer - first) / every_ * every_;
  }

  std::size_t every_;
};

class SelectiveRecompute final : public ActivationPolicy {
 public:
  std::vector<Visit> backward_order(const LayerGraph& graph) const override {
    std::vector<Visit> visits;
    for (std::size_t l = graph.layers.size(); l-- > 0;) {
      if (graph.layers[l].core_saved().value() > 0) visits.push_back({l, Pass::recompute_core});
      visits.push_back({l, Pass::backward});
    }
    return visits;
  }

  void add(Step& step, const Visit& visit) const override {
    std::vector<std::vector<Effect>> effects(step.ranks());
    const Layer& layer = step.graph().layers[visit.layer];
    if (visit.pass == Pass::forward) {
      keep_until_backward(step, visit.layer, "activations", layer.saved() - layer.core_saved(),
                          effects);
      step.on_layer("forward", visit, std::move(effects));
      return;
    }
    if (visit.pass == Pass::recompute_core) {
      const OwnerId owner = step.plan().owner("recomputed activations");
      for (std::uint16_t r = 0; r < step.ranks(); ++r) {
        const BufferId core = step.plan().buffer(step.gpu_pool(r), owner, layer.core_saved());
        step.rebuilt(r) = core;
        effects[r].push_back(allocate(core));
      }
      step.on_layer("recompute attention", visit, std::move(effects));
      return;
    }
    free_kept(step, visit.layer, effects);
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      if (step.rebuilt(r)) effects[r].push_back(free(*step.rebuilt(r)));
      step.rebuilt(r).reset();
    }
    step.on_layer("backward", visit, std::move(effects));
  }

  std::string describe() const override { return "selective recomputation of the attention core"; }
};

}  // namespace

std::unique_ptr<ActivationPolicy> make_recompute(yaml::Map& options) {
  constexpr std::array<std::string_view, 2> modes = {"full", "selective"};
  const std::size_t mode = options.choice_or("mode", modes, 0);
  const std::int64_t every = options.count_or("every", 1, 1);
  if (mode == 0) return std::make_unique<FullRecompute>(every);
  if (every != 1) options.at("every").problem("applies to mode full; leave it out for selective");
  return std::make_unique<SelectiveRecompute>();
}

}  // namespace tidegate
