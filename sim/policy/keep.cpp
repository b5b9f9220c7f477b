#include "sim/policy/activations.hpp"

namespace tidegate {
namespace {

class Keep final : public ActivationPolicy {
 public:
  void forward(Step& step, std::size_t layer) const override {
    const Layer& l = step.graph().layers[layer];
    const OwnerId owner = step.plan().owner("activations");
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      auto& use = step.use(r);
      const BufferId saved = step.plan().buffer(step.gpu_pool(r), owner, l.saved());
      step.kept(layer, r) = saved;
      use.effects.push_back(allocate(saved));
      step.on_gpu("forward", r, static_cast<std::int32_t>(layer), l.forward_kernels(), use.ready, use.effects);
    }
  }

  void backward(Step& step, std::size_t layer) const override {
    const Layer& l = step.graph().layers[layer];
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      auto& use = step.use(r);
      use.effects.push_back(free(*step.kept(layer, r)));
      step.on_gpu("backward", r, static_cast<std::int32_t>(layer), l.backward_kernels(), use.ready, use.effects);
    }
  }

  std::string describe() const override { return "activations kept on the GPU"; }
};

}  // namespace

std::unique_ptr<ActivationPolicy> make_keep(yaml::Map&) { return std::make_unique<Keep>(); }

}  // namespace tidegate
