#include "sim/policy/activations.hpp"

#include <array>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

// A block is recomputed; the embedding and the head are not: Megatron and DeepSpeed checkpoint the
// repeated blocks alone.
bool is_recomputed(const Layer& layer) { return layer.kind == LayerKind::block; }

class FullRecompute final : public ActivationPolicy {
 public:
  explicit FullRecompute(std::int64_t every) : every_(static_cast<std::size_t>(every)) {}

  void forward(Step& step, std::size_t layer) const override {
    const Layer& l = step.graph().layers[layer];
    const bool starts = !is_recomputed(l) || layer == segment_start(step, layer);
    const Bytes kept = is_recomputed(l) ? l.input : l.saved();
    const OwnerId owner = step.plan().owner(is_recomputed(l) ? "checkpoints" : "activations");
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      auto& use = step.use(r);
      if (starts) keep(step, layer, r, owner, kept);
      step.on_gpu("forward", r, static_cast<std::int32_t>(layer), l.forward_kernels(), use.ready, use.effects);
    }
  }

  void backward(Step& step, std::size_t layer) const override {
    const Layer& l = step.graph().layers[layer];
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      auto& use = step.use(r);
      std::vector<TaskId> ready = use.ready;
      if (is_recomputed(l)) restore(step, layer, r, ready);
      use.effects.push_back(free(*step.kept(layer, r)));
      step.on_gpu("backward", r, static_cast<std::int32_t>(layer), l.backward_kernels(), ready, use.effects);
    }
  }

  std::string describe() const override {
    return every_ == 1 ? "full recomputation" : fmt::format("full recomputation of every {} layers", every_);
  }

 private:
  // Blocks are cut into segments of `every_` from the first block on.
  static std::size_t first_block(const Step& step, std::size_t layer) {
    std::size_t first = layer;
    while (first > 0 && is_recomputed(step_graph(step).layers[first - 1])) --first;
    return first;
  }
  std::size_t segment_start(const Step& step, std::size_t layer) const {
    const std::size_t first = first_block(step, layer);
    return first + (layer - first) / every_ * every_;
  }
  bool ends_segment(const Step& step, std::size_t layer) const {
    const auto& layers = step_graph(step).layers;
    return layer + 1 == layers.size() || !is_recomputed(layers[layer + 1]) ||
           segment_start(step, layer + 1) == layer + 1;
  }
  static const LayerGraph& step_graph(const Step& step) { return step.setting().graph; }

  static void keep(Step& step, std::size_t layer, std::uint16_t r, OwnerId owner, Bytes bytes) {
    const BufferId buffer = step.plan().buffer(step.gpu_pool(r), owner, bytes);
    step.kept(layer, r) = buffer;
    step.use(r).effects.push_back(allocate(buffer));
  }

  // The last layer of a segment comes first in backward: it runs the whole segment's forward again,
  // each layer allocating what its backward needs; the segment's input is freed with its first layer.
  void restore(Step& step, std::size_t layer, std::uint16_t r, std::vector<TaskId>& ready) const {
    const std::size_t start = segment_start(step, layer);
    const OwnerId owner = step.plan().owner("recomputed activations");
    if (ends_segment(step, layer)) {
      const BufferId input = *step.kept(start, r);
      std::vector<Kernel> kernels;
      std::vector<Effect> effects;
      for (std::size_t l = start; l <= layer; ++l) {
        const auto more = step.graph().layers[l].forward_kernels();
        kernels.insert(kernels.end(), more.begin(), more.end());
        const BufferId saved = step.plan().buffer(step.gpu_pool(r), owner, step.graph().layers[l].saved());
        effects.push_back(allocate(saved));
        step.kept(l, r) = saved;
      }
      // The layer input is among the saved tensors of its first operator from here on.
      effects.push_back(free(input));
      ready = {step.on_gpu("recompute", r, static_cast<std::int32_t>(layer), std::move(kernels), ready, effects)};
    }
  }

  std::size_t every_;
};

class SelectiveRecompute final : public ActivationPolicy {
 public:
  void forward(Step& step, std::size_t layer) const override {
    const Layer& l = step.graph().layers[layer];
    const OwnerId owner = step.plan().owner("activations");
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      auto& use = step.use(r);
      const BufferId saved = step.plan().buffer(step.gpu_pool(r), owner, l.saved() - l.core_saved());
      step.kept(layer, r) = saved;
      use.effects.push_back(allocate(saved));
      step.on_gpu("forward", r, static_cast<std::int32_t>(layer), l.forward_kernels(), use.ready, use.effects);
    }
  }

  void backward(Step& step, std::size_t layer) const override {
    const Layer& l = step.graph().layers[layer];
    const OwnerId owner = step.plan().owner("recomputed activations");
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      auto& use = step.use(r);
      std::vector<TaskId> ready = use.ready;
      if (l.core_saved().value() > 0) {
        const BufferId core = step.plan().buffer(step.gpu_pool(r), owner, l.core_saved());
        const Effect effects[] = {allocate(core)};
        ready = {step.on_gpu("recompute attention", r, static_cast<std::int32_t>(layer), l.core_kernels(), ready, effects)};
        use.effects.push_back(free(core));
      }
      use.effects.push_back(free(*step.kept(layer, r)));
      step.on_gpu("backward", r, static_cast<std::int32_t>(layer), l.backward_kernels(), ready, use.effects);
    }
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
