#include <algorithm>
#include <utility>

#include "sim/policy/bindings.hpp"
#include "sim/policy/step.hpp"

/// The kernels of a layer on the ranks of its stage, and what its tensor-parallel groups exchange.
namespace tidegate {
namespace {

// Allocations at the start of the first kernels of a visit, frees at the end of the last.
class EffectsAround final : public SegmentHooks {
 public:
  EffectsAround(std::uint16_t first_rank, const StageEffects& effects)
      : first_rank_(first_rank), effects_(effects) {}

  void before(std::uint16_t rank, const Segment& segment, Beside& beside) override {
    for (const Effect& e : effects_[static_cast<std::size_t>(rank - first_rank_)]) {
      const bool at_start = e.kind == Effect::Kind::allocate;
      if (at_start ? segment.begins : segment.ends) beside.effects.push_back(e);
    }
  }

 private:
  std::uint16_t first_rank_;
  const StageEffects& effects_;
};

}  // namespace

void Step::model_launches(std::int32_t queue) {
  launch_queue_ = queue;
  for (std::uint16_t r = 0; r < ranks() && run_ahead_.size() < ranks(); ++r) {
    run_ahead_.push_back(plan_.tokens("rank" + std::to_string(r) + ".launch queue", queue));
  }
}

void Step::add_short_lived(OwnerId owner, Bytes bytes, std::uint16_t rank,
                           std::vector<Effect>& effects) {
  if (bytes.value() <= 0) return;
  const BufferId buffer = plan_.buffer(gpu_pools_[rank], owner, bytes);
  effects.push_back(allocate(buffer));
  effects.push_back(free(buffer));
}

// Workspace and, where ZeRO partitions gradients, the gradients of operators [first, last].
void Step::add_short_lived(const Visit& visit, std::size_t first, std::size_t last,
                           std::uint16_t rank, std::vector<Effect>& effects) {
  const auto [workspace, elements] = segments_.short_lived(visit.layer, visit.pass, first, last);
  add_short_lived(workspace_owner_, workspace, rank, effects);
  const Bytes produced(static_cast<double>(elements) * bytes_per_element(graph().dtype));
  if (visit.pass != Pass::backward || produced == Bytes(0)) return;
  const bool passes = setting_.zero.stage < 2 && !setting_.zero.contiguous_gradients;
  if (passes && visit.micro_batch == 0) {
    passing_gradients_[rank].push_back(plan_.buffer(gpu_pools_[rank], gradient_owner_, produced));
    effects.push_back(allocate(passing_gradients_[rank].back()));
  } else if (passes || setting_.zero.stage >= 2) {
    add_short_lived(gradient_owner_, produced, rank, effects);
  }
}

TaskId Step::launch_and_run(const char* name, const Visit& visit, const Segment& segment,
                            std::uint16_t rank, const Beside& beside) {
  const auto item = static_cast<std::int32_t>(visit.layer);
  const auto run = [&](std::span<const Effect> effects) {
    const WorkId kernels = segments_.kernels(plan_, visit.layer, visit.pass, segment, rank);
    return on_gpu(name, rank, item, kernels, beside.kernel_after, effects);
  };
  if (!has_launches()) return run(beside.effects);
  const std::size_t kernels = count_kernels(graph().layers[visit.layer], visit.pass, segment);
  const auto count = std::clamp(static_cast<std::int32_t>(kernels), 1, launch_queue_);
  const Effect take[] = {acquire(run_ahead_[rank], count)};
  on_thread("launch", rank, item,
            Delay{static_cast<double>(count) * setting_.machine.host().launch}, beside.launch_after,
            take);
  std::vector<Effect> effects = beside.effects;
  effects.push_back(release(run_ahead_[rank], count));
  return run(effects);
}

// The tensor-parallel collectives of an operator in every group of the stage, after whatever the
// next kernels wait for. By rank of the stage: what comes behind them has to wait for.
std::vector<std::vector<TaskId>> Step::communicate(const Visit& visit,
                                                   std::span<const Collective> list) {
  const std::uint16_t first_rank = layout().first_rank(visit.stage);
  std::vector<std::vector<TaskId>> tasks(layout().ranks_per_stage());
  for (const Communicator& c : tensor_groups_[visit.stage]) {
    for (const Collective& what : list) {
      const TaskId task =
          tensor_collective(name_of(what.kind), c, static_cast<std::int32_t>(visit.layer), what);
      for (std::uint16_t i = 0; i < c.group.here; ++i) {
        tasks[static_cast<std::size_t>(c.group.rank(i) - first_rank)].push_back(task);
      }
    }
  }
  return tasks;
}

void Step::wait_for(std::uint16_t stage, const std::vector<std::vector<TaskId>>& tasks) {
  for (const std::uint16_t r : crew(stage)) {
    for (const TaskId t : tasks[static_cast<std::size_t>(r - layout().first_rank(stage))]) {
      ranks_[r].compute.also(t);
    }
  }
}

StageEffects& Step::stage_effects() {
  stage_effects_.resize(layout().ranks_per_stage());
  for (std::vector<Effect>& of_rank : stage_effects_) of_rank.clear();
  return stage_effects_;
}

void Step::on_layer(const char* name, const Visit& visit, StageEffects& effects) {
  const std::size_t operators = graph().layers[visit.layer].operators.size();
  const std::size_t last = std::max<std::size_t>(operators, 1) - 1;
  for (const std::uint16_t r : crew(visit.stage)) {
    const auto i = static_cast<std::size_t>(r - layout().first_rank(visit.stage));
    add_short_lived(visit, 0, last, r, effects[i]);
  }
  EffectsAround hooks(layout().first_rank(visit.stage), effects);
  on_layer(name, visit, hooks);
}

// A segment of a visit on every rank of its stage, and what its tensor-parallel group exchanges.
void Step::on_segment(const char* name, const Visit& visit, const Segment& segment,
                      const Gatherer::Ready& ready, SegmentHooks& hooks) {
  const auto& operators = graph().layers[visit.layer].operators;
  const bool is_backward = visit.pass == Pass::backward;
  const bool is_core = visit.pass == Pass::recompute_core;
  const bool communicates =
      !is_core && segment.last < operators.size() && !tensor_groups_[visit.stage].empty();
  std::vector<std::vector<TaskId>> beside_kernels;
  if (communicates && is_backward) {
    beside_kernels = communicate(visit, operators[segment.last].beside_backward);
  }
  std::vector<TaskId>& kernels = segment_kernels_;
  kernels.assign(ranks(), TaskId{});
  for (const std::uint16_t r : crew(visit.stage)) {
    beside_.clear();
    hooks.before(r, segment, beside_);
    if (hooks.is_by_operator()) {
      add_short_lived(visit, segment.first, segment.last, r, beside_.effects);
    }
    if (!ready.after.empty()) beside_.kernel_after.push_back(ready.after[r]);
    if (!ready.frees.empty()) beside_.effects.push_back(free(ready.frees[r]));
    kernels[r] = launch_and_run(name, visit, segment, r, beside_);
    if (bindings != nullptr) bindings->computed(kernels[r], visit, segment, r);
    hooks.behind(r, segment, kernels[r]);
  }
  if (!communicates) return;
  if (is_backward) wait_for(visit.stage, beside_kernels);
  const Operator& op = operators[is_backward ? segment.first : segment.last];
  wait_for(visit.stage,
           communicate(visit, is_backward ? op.backward_collectives : op.forward_collectives));
}

void Step::on_layer(const char* name, const Visit& visit, SegmentHooks& hooks) {
  const bool is_core = visit.pass == Pass::recompute_core;
  const bool is_backward = visit.pass == Pass::backward;
  const Layer& layer = graph().layers[visit.layer];
  const Cut cut = hooks.is_by_operator()           ? Cut::by_operator
                  : layout().parallel().tensor > 1 ? Cut::at_collectives
                                                   : Cut::whole;
  const auto parts = gatherer->sub_modules(visit.layer);
  const std::size_t count = is_core ? 1 : parts.size();
  for (std::size_t i = 0; i < count; ++i) {
    const SubModule& part = parts[is_backward ? count - 1 - i : i];
    const Gatherer::Ready ready = is_core ? Gatherer::Ready{} : gatherer->next(*this);
    auto list = is_core ? std::vector<Segment>{{part.first, part.last, true, true}}
                        : segments_of(layer, visit.pass, part, cut);
    list.front().begins = i == 0;
    list.back().ends = i + 1 == count;
    for (const Segment& segment : list) {
      Gatherer::Ready mine;
      if (&segment == &list.front()) mine.after = ready.after;
      if (&segment == &list.back()) mine.frees = ready.frees;
      on_segment(name, visit, segment, mine, hooks);
    }
    if (!is_core) gatherer->used(segment_kernels_);
    if (is_backward) gradients->produced(visit, part);
  }
}

}  // namespace tidegate
