#include "sim/policy/build_plan.hpp"

#include <algorithm>
#include <optional>

#include "models/base/error.hpp"
#include "sim/policy/bindings.hpp"
#include "sim/policy/gradient_buckets.hpp"
#include "sim/policy/pipeline_links.hpp"
#include "sim/policy/schedule.hpp"

namespace tidegate {
namespace {

// The actions of an iteration in turn, and the memory that stands throughout.
class Walker {
 public:
  Walker(const Setting& setting, Policy& policy)
      : step_(setting),
        policy_(policy),
        gatherer_(step_, *policy.parameters),
        buckets_(step_, *policy.optimizer),
        links_(step_),
        schedule_(
            pipeline_schedule(stages(), setting.layout.parallel().chunks, setting.accumulation)) {
    step_.gatherer = &gatherer_;
    step_.gradients = &buckets_;
    if (!setting.carries_meaning) return;
    bindings_.emplace(step_);
    step_.bindings = &*bindings_;
  }

  Plan run(std::int32_t iterations) {
    prepare();
    for (std::int32_t i = 0; i < iterations; ++i) {
      iteration(i);
      // Iterations are alike.
      if (i == 0) step_.plan().expect(static_cast<std::size_t>(iterations) + 1);
    }
    return step_.close(iterations);
  }

  Outline outline() {
    prepare();
    std::vector<LeastWork> least(step_.ranks());
    for (std::uint16_t r = 0; r < step_.ranks() && stages() == 1; ++r) {
      policy_.parameters->add_least(step_, r, least[r]);
      policy_.optimizer->add_least(step_, r, least[r]);
    }
    return {step_.close(1), std::move(least)};
  }

 private:
  const ZeroOptions& zero() const { return step_.setting().zero; }
  std::uint16_t stages() const { return step_.layout().stages(); }

  void prepare() {
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) reserve(r);
    reserve_base();
    add_loading(step_);
    policy_.parameters->prepare(step_);
    policy_.optimizer->prepare(step_);
    policy_.activations->prepare(step_);
    step_.open();
  }

  void reserve(std::uint16_t r) {
    std::int64_t total = 0, persistent = 0;
    for (const Layer& layer : step_.graph_of(r).layers) {
      total += layer.parameters();
      for (const Operator& op : layer.operators) {
        for (const Parameter& p : op.parameters) {
          if (p.elements < zero().persistence_threshold) persistent += p.elements;
        }
      }
    }
    const auto bytes = [&](std::int64_t elements) {
      return Bytes(static_cast<double>(elements) * bytes_per_element(step_.graph().dtype));
    };
    const PoolId pool = step_.gpu_pool(r);
    if (zero().stage < 2 && zero().contiguous_gradients) {
      step_.reserve(pool, "gradients", bytes(total));
    }
    if (zero().stage < 3) {
      step_.reserve(pool, "parameters", bytes(total));
    } else {
      step_.reserve(pool, "persistent parameters", bytes(persistent));
    }
    // Contiguous gradients: one flat bucket of the whole size, whether or not anyone else is there
    // to reduce with (DeepSpeed stage_1_and_2.py and stage3.py).
    const bool is_whole = zero().stage >= 2;
    if (step_.world() > 1 || is_whole) {
      const std::int64_t bucket = zero().reduce_bucket;
      step_.reserve(pool, "reduce bucket", bytes(is_whole ? bucket : std::min(bucket, total)));
    }
  }

  void reserve_base() {
    const Host& host = step_.setting().machine.host();
    const bool knows_processes = host.process_use.value() > 0;
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) {
      const bool is_first_of_node = r == 0 || step_.node_of(r) != step_.node_of(r - 1);
      if (is_first_of_node) {
        step_.reserve_process(r, knows_processes ? "system" : "system and processes",
                              host.base_use);
      }
      step_.reserve_process(r, "processes", host.process_use);
    }
  }

  void iteration(std::int32_t i) {
    policy_.activations->begin(step_, i);
    if (stages() > 1) {
      pipelined(i);
    } else {
      for (std::int32_t m = 0; m < step_.setting().accumulation; ++m) micro_step(i, m);
    }
    step_.begin(i, Phase::update);
    for (std::uint16_t r = 0; r < step_.ranks(); ++r)
      policy_.optimizer->update(step_, r, *policy_.parameters);
    if (zero().stage > 0) buckets_.gather_updated();
    step_.end(Phase::update);
  }

  std::vector<Visit> visits(const Action& action) const {
    const Piece piece = step_.pieces()[static_cast<std::size_t>(action.piece(stages()))];
    std::vector<Visit> list;
    if (action.is_forward) {
      for (std::size_t l = piece.first; l < piece.last; ++l) list.push_back({l, Pass::forward});
    } else {
      list = policy_.activations->backward_order(step_.graph(), piece.first, piece.last);
    }
    for (Visit& visit : list) {
      visit.stage = action.stage;
      visit.micro_batch = action.micro_batch;
    }
    return list;
  }

  void micro_step(std::int32_t i, std::int32_t m) {
    const auto forward = visits({0, 0, m, true}), back = visits({0, 0, m, false});
    std::vector<Visit> all(forward);
    all.insert(all.end(), back.begin(), back.end());
    const Action ahead{0, 0, m, true}, behind{0, 0, m, false};
    step_.begin(i, Phase::forward);
    gatherer_.begin(all, i > 0 || m > 0);
    policy_.activations->upcoming(ahead, &behind);
    for (const Visit& visit : forward) policy_.activations->add(step_, visit);
    step_.end(Phase::forward);
    step_.begin(i, Phase::backward);
    policy_.activations->upcoming(behind, nullptr);
    backward(back, 0, m);
    step_.end(Phase::backward);
  }

  void backward(std::span<const Visit> visits, std::uint16_t stage, std::int64_t micro_step) {
    buckets_.begin(stage, micro_step);
    for (const Visit& visit : visits) policy_.activations->add(step_, visit);
    buckets_.reduce(stage);
  }

  // Forward ends on a rank with the forwards that fill the pipeline; backward is all the rest.
  void pipelined(std::int32_t i) {
    std::vector<bool> is_filled(stages(), false);
    links_.begin();
    std::vector<std::vector<Action>> by_stage(stages());
    for (const Action& action : schedule_) by_stage[action.stage].push_back(action);
    std::vector<std::size_t> done(stages(), 0);
    for (const Action& action : schedule_) {
      const auto& mine = by_stage[action.stage];
      const std::size_t next = ++done[action.stage];
      policy_.activations->upcoming(action, next < mine.size() ? &mine[next] : nullptr);
      const bool is_first_backward = !action.is_forward && !is_filled[action.stage];
      if (is_first_backward) {
        step_.begin(i, Phase::forward);
        for (const std::uint16_t r : step_.crew(action.stage)) step_.mark(Phase::forward, r);
        is_filled[action.stage] = true;
      }
      step_.begin(i, action.is_forward ? Phase::forward : Phase::backward);
      links_.receive(action);
      const auto list = visits(action);
      gatherer_.begin(list, true);
      if (action.is_forward) {
        for (const Visit& visit : list) policy_.activations->add(step_, visit);
      } else {
        backward(list, action.stage, action.micro_batch);
      }
      links_.send(action);
      if (step_.has_launches()) step_.synchronize(action.stage);
    }
    step_.begin(i, Phase::backward);
    step_.end(Phase::backward);
  }

  Step step_;
  Policy& policy_;
  Gatherer gatherer_;
  GradientBuckets buckets_;
  PipelineLinks links_;
  std::vector<Action> schedule_;
  std::optional<Bindings> bindings_;
};

}  // namespace

Plan build_plan(const Setting& setting, Policy& policy, std::int32_t iterations) {
  ensure(iterations > 0, "a plan has one iteration at least");
  return Walker(setting, policy).run(iterations);
}

Outline outline(const Setting& setting, Policy& policy) {
  return Walker(setting, policy).outline();
}

}  // namespace tidegate
