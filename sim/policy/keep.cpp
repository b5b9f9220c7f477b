#include "sim/policy/activations.hpp"

#include <set>

namespace tidegate {
namespace {

class Keep final : public ActivationPolicy {
 public:
  std::vector<Visit> backward_order(const LayerGraph&, std::size_t first,
                                    std::size_t last) const override {
    return plain_backward(first, last);
  }

  void add(Step& step, const Visit& visit) override {
    StageEffects effects(step.layout().ranks_per_stage());
    if (visit.pass == Pass::forward) {
      const Layer& layer = step.graph().layers[visit.layer];
      keep_until_backward(step, visit, "activations", storages_of(layer, Part::all), effects);
      step.on_layer("forward", visit, std::move(effects));
    } else {
      free_kept(step, visit, effects);
      step.on_layer("backward", visit, std::move(effects));
    }
  }

  std::string describe() const override { return "activations kept on the GPU"; }
};

}  // namespace

std::vector<SavedTensor> storages_of(const Layer& layer, Part part) {
  std::vector<SavedTensor> tensors;
  std::set<std::int32_t> seen;
  const auto add = [&](bool is_core, bool is_wanted) {
    for (const Operator& op : layer.operators) {
      if (op.is_attention_core != is_core) continue;
      for (const SavedTensor& t : op.saved) {
        if (seen.insert(t.identity).second && is_wanted) tensors.push_back(t);
      }
    }
  };
  add(false, part != Part::core);  // what an operator outside keeps as well is not the core's
  add(true, part != Part::outside_core);
  return tensors;
}

void keep_until_backward(Step& step, const Visit& visit, const char* owner,
                         std::span<const SavedTensor> tensors, StageEffects& effects) {
  const OwnerId id = step.plan().owner(owner);
  const std::uint16_t first = step.layout().first_rank(visit.stage);
  for (const std::uint16_t r : step.crew(visit.stage)) {
    for (const SavedTensor& t : tensors) {
      const BufferId buffer = step.plan().buffer(step.gpu_pool(r), id, t.bytes);
      step.kept(visit, r).push_back(buffer);
      effects[static_cast<std::size_t>(r - first)].push_back(allocate(buffer));
    }
  }
}

void keep_until_backward(Step& step, const Visit& visit, const char* owner, Bytes bytes,
                         StageEffects& effects) {
  const SavedTensor tensor{"", bytes, 0, 0};
  keep_until_backward(step, visit, owner, {&tensor, 1}, effects);
}

void free_kept(Step& step, const Visit& visit, StageEffects& effects) {
  const std::uint16_t first = step.layout().first_rank(visit.stage);
  for (const std::uint16_t r : step.crew(visit.stage)) {
    auto& kept = step.kept(visit, r);
    for (const BufferId b : kept) effects[static_cast<std::size_t>(r - first)].push_back(free(b));
    kept.clear();
  }
}

std::vector<Visit> plain_backward(std::size_t first, std::size_t last) {
  std::vector<Visit> visits;
  for (std::size_t l = last; l-- > first;) visits.push_back({l, Pass::backward});
  return visits;
}

std::unique_ptr<ActivationPolicy> make_keep(yaml::Map&, const Machine&) {
  return std::make_unique<Keep>();
}

}  // namespace tidegate
