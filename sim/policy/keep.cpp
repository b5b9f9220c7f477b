#include "sim/policy/activations.hpp"

namespace tidegate {
namespace {

class Keep final : public ActivationPolicy {
 public:
  std::vector<Visit> backward_order(const LayerGraph& graph) const override {
    std::vector<Visit> visits;
    for (std::size_t l = graph.layers.size(); l-- > 0;) visits.push_back({l, Pass::backward});
    return visits;
  }

  void add(Step& step, const Visit& visit) const override {
    std::vector<std::vector<Effect>> effects(step.ranks());
    if (visit.pass == Pass::forward) {
      keep_until_backward(step, visit.layer, "activations",
                          step.graph().layers[visit.layer].saved(), effects);
      step.on_layer("forward", visit, std::move(effects));
    } else {
      free_kept(step, visit.layer, effects);
      step.on_layer("backward", visit, std::move(effects));
    }
  }

  std::string describe() const override { return "activations kept on the GPU"; }
};

}  // namespace

void keep_until_backward(Step& step, std::size_t layer, const char* owner, Bytes bytes,
                         std::vector<std::vector<Effect>>& effects) {
  const OwnerId id = step.plan().owner(owner);
  for (std::uint16_t r = 0; r < step.ranks(); ++r) {
    const BufferId buffer = step.plan().buffer(step.gpu_pool(r), id, bytes);
    step.kept(layer, r) = buffer;
    effects[r].push_back(allocate(buffer));
  }
}

void free_kept(Step& step, std::size_t layer, std::vector<std::vector<Effect>>& effects) {
  for (std::uint16_t r = 0; r < step.ranks(); ++r) effects[r].push_back(free(*step.kept(layer, r)));
}

std::unique_ptr<ActivationPolicy> make_keep(yaml::Map&) { return std::make_unique<Keep>(); }

}  // namespace tidegate
