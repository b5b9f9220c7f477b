#include "sim/policy/activations.hpp"

#include <algorithm>
#include <set>

#include "sim/policy/bindings.hpp"

namespace tidegate {
namespace {

class Keep final : public ActivationPolicy {
 public:
  explicit Keep(bool by_operator) : by_operator_(by_operator) {}

  std::vector<Visit> backward_order(const LayerGraph&, std::size_t first,
                                    std::size_t last) const override {
    return plain_backward(first, last);
  }

  void add(Step& step, const Visit& visit) override {
    const bool is_forward = visit.pass == Pass::forward;
    if (by_operator_) {
      return is_forward ? keep_by_operator(step, "forward", visit, "activations")
                        : free_by_operator(step, "backward", visit);
    }
    StageEffects& effects = step.stage_effects();
    if (is_forward) {
      const Layer& layer = step.graph().layers[visit.layer];
      keep_until_backward(step, visit, "activations", storages_of(layer, Part::all), effects);
      step.on_layer("forward", visit, effects);
    } else {
      free_kept(step, visit, effects);
      step.on_layer("backward", visit, effects);
    }
  }

  // By operator, gradients take the place of what is kept, so less may be there at a time.
  Bytes least_kept(const LayerGraph& graph) const override {
    return by_operator_ ? Bytes(0) : graph.saved();
  }
  std::string describe() const override { return "activations kept on the GPU"; }

 private:
  bool by_operator_;
};

// By operator, the storages that it is the first to save.
std::vector<std::vector<SavedTensor>> first_saved(const Layer& layer) {
  std::vector<std::vector<SavedTensor>> by_operator;
  std::set<std::int32_t> seen;
  for (const Operator& op : layer.operators) {
    std::vector<SavedTensor>& mine = by_operator.emplace_back();
    for (const SavedTensor& t : op.saved) {
      if (seen.insert(t.identity).second) mine.push_back(t);
    }
  }
  return by_operator;
}

class TensorByTensor final : public SegmentHooks {
 public:
  TensorByTensor(Step& step, const Visit& visit, const char* owner)
      : step_(step),
        visit_(visit),
        owner_(step.plan().owner(owner)),
        saved_(first_saved(step.graph().layers[visit.layer])) {}
  bool is_by_operator() const override { return true; }
  void before(std::uint16_t rank, const Segment& segment, Beside& beside) override {
    visit_.pass == Pass::backward ? release(rank, segment, beside.effects)
                                  : keep(rank, segment, beside.effects);
  }

 private:
  void keep(std::uint16_t rank, const Segment& segment, std::vector<Effect>& effects) {
    std::vector<BufferId>& kept = step_.kept(visit_, rank);
    if (segment.begins) {
      for (const BufferId b : kept) effects.push_back(free(b));
      kept.clear();
    }
    if (segment.first >= saved_.size()) return;
    for (const SavedTensor& t : saved_[segment.first]) {
      kept.push_back(step_.plan().buffer(step_.gpu_pool(rank), owner_, t.bytes));
      effects.push_back(allocate(kept.back()));
      if (step_.bindings != nullptr)
        step_.bindings->put(visit_, rank, t.identity, 0, {{kept.back(), {}}});
    }
  }
  // Backward visits the operators in reverse: what the last one kept stands last.
  void release(std::uint16_t rank, const Segment& segment, std::vector<Effect>& effects) {
    std::vector<BufferId>& kept = step_.kept(visit_, rank);
    if (segment.first >= saved_.size()) return;
    for (std::size_t i = 0; i < saved_[segment.first].size(); ++i) {
      effects.push_back(free(kept.back()));
      kept.pop_back();
    }
  }

  Step& step_;
  Visit visit_;
  OwnerId owner_;
  std::vector<std::vector<SavedTensor>> saved_;
};

}  // namespace

void keep_by_operator(Step& step, const char* name, const Visit& visit, const char* owner) {
  TensorByTensor hooks(step, visit, owner);
  step.on_layer(name, visit, hooks);
}

void free_by_operator(Step& step, const char* name, const Visit& visit) {
  TensorByTensor hooks(step, visit, "activations");
  step.on_layer(name, visit, hooks);
}

std::vector<const SavedTensor*> storages_of(const Layer& layer, Part part) {
  constexpr std::size_t usual = 32;
  std::vector<const SavedTensor*> tensors;
  std::vector<std::int32_t> seen;  // few
  tensors.reserve(usual), seen.reserve(usual);
  const auto add = [&](bool is_core, bool is_wanted) {
    for (const Operator& op : layer.operators) {
      if (op.is_attention_core != is_core) continue;
      for (const SavedTensor& t : op.saved) {
        if (std::ranges::find(seen, t.identity) != seen.end()) continue;
        seen.push_back(t.identity);
        if (is_wanted) tensors.push_back(&t);
      }
    }
  };
  add(false, part != Part::core);  // what an operator outside keeps as well is not the core's
  add(true, part != Part::outside_core);
  return tensors;
}

void keep_until_backward(Step& step, const Visit& visit, const char* owner,
                         std::span<const SavedTensor* const> tensors, StageEffects& effects) {
  const OwnerId id = step.plan().owner(owner);
  const std::uint16_t first = step.layout().first_rank(visit.stage);
  for (const std::uint16_t r : step.crew(visit.stage)) {
    std::vector<BufferId>& kept = step.kept(visit, r);
    std::vector<Effect>& mine = effects[static_cast<std::size_t>(r - first)];
    for (const SavedTensor* t : tensors) {
      const BufferId buffer = step.plan().buffer(step.gpu_pool(r), id, t->bytes);
      kept.push_back(buffer);
      mine.push_back(allocate(buffer));
      if (step.bindings != nullptr) step.bindings->put(visit, r, t->identity, 0, {{buffer, {}}});
    }
  }
}

void keep_until_backward(Step& step, const Visit& visit, const char* owner, Bytes bytes,
                         StageEffects& effects) {
  const SavedTensor tensor{"", bytes, 0, 0};
  const SavedTensor* const tensors[] = {&tensor};
  keep_until_backward(step, visit, owner, tensors, effects);
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

std::unique_ptr<ActivationPolicy> make_keep(yaml::Map& options, const Machine&) {
  return std::make_unique<Keep>(options.flag_or("by_operator", false));
}

}  // namespace tidegate
