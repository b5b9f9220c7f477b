#include "sim/policy/build_plan.hpp"

#include <algorithm>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

// Buckets whose reduction may be outstanding before the compute stream waits
// (DeepSpeed stage 3, max_param_reduce_events).
constexpr std::size_t buckets_in_flight = 2;

struct LayerSizes {
  std::int64_t gathered = 0;          // elements that ZeRO 3 gathers for the layer
  std::vector<std::int64_t> tensors;  // elements, in registration order
};

class Walker {
 public:
  Walker(const Setting& setting, Policy& policy) : step_(setting), policy_(policy) {
    for (const Layer& layer : setting.graph.layers) {
      LayerSizes size;
      for (const Parameter& p : parameters_in_order(layer)) {
        size.tensors.push_back(p.elements);
        if (p.elements >= setting.zero.persistence_threshold) size.gathered += p.elements;
        total_ += p.elements;
      }
      sizes_.push_back(std::move(size));
    }
    gather_lane_ = step_.plan().lane("parameter gather", 0);
    reduce_lane_ = step_.plan().lane("gradient reduce", 0);
    gather_owner_ = step_.plan().owner("gathered parameters");
    gradient_owner_ = step_.plan().owner("gradients");
    workspace_owner_ = step_.plan().owner("workspace");
  }

  Plan run(std::int32_t iterations) {
    reserve();
    policy_.parameters->prepare(step_);
    policy_.optimizer->prepare(step_);
    step_.open();
    for (std::int32_t i = 0; i < iterations; ++i) iteration(i);
    return step_.close(iterations);
  }

 private:
  using Order = std::vector<std::size_t>;

  const ZeroOptions& zero() const { return step_.setting().zero; }
  double element_bytes() const { return bytes_per_element(step_.graph().dtype); }

  void reserve() {
    const double whole = static_cast<double>(total_);
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) {
      const PoolId pool = step_.gpu_pool(r);
      if (zero().stage < 2) step_.reserve(pool, "gradients", Bytes(whole * element_bytes()));
      if (zero().stage < 3) {
        step_.reserve(pool, "parameters", Bytes(whole * element_bytes()));
      } else {
        step_.reserve(pool, "persistent parameters", Bytes(persistent() * element_bytes()));
      }
      if (step_.setting().world > 1) {
        const auto bucket = static_cast<double>(std::min(zero().reduce_bucket, total_));
        step_.reserve(pool, "reduce bucket", Bytes(bucket * element_bytes()));
      }
    }
    step_.reserve(step_.host_pool(), "system and processes", step_.setting().machine.host().base_use);
  }

  double persistent() const {
    double gathered = 0;
    for (const LayerSizes& s : sizes_) gathered += static_cast<double>(s.gathered);
    return static_cast<double>(total_) - gathered;
  }

  void iteration(std::int32_t i) {
    for (std::int64_t m = 0; m < step_.setting().accumulation; ++m) {
      step_.begin(i, Phase::forward);
      forward();
      step_.end(Phase::forward);
      step_.begin(i, Phase::backward);
      backward(m);
      step_.end(Phase::backward);
    }
    step_.begin(i, Phase::update);
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) policy_.optimizer->update(step_, r, *policy_.parameters);
    if (zero().stage == 1 || zero().stage == 2) gather_updated();
    step_.end(Phase::update);
  }

  void forward() {
    Order order;
    for (std::size_t l = 0; l < sizes_.size(); ++l) order.push_back(l);
    begin_pass();
    for (std::size_t at = 0; at < order.size(); ++at) {
      prepare_layer(order, at);
      for (std::uint16_t r = 0; r < step_.ranks(); ++r) add_workspace(order[at], r);
      policy_.activations->forward(step_, order[at]);
      remember_kernels(at);
    }
  }

  void backward(std::int64_t micro_step) {
    Order order;
    for (std::size_t l = sizes_.size(); l-- > 0;) order.push_back(l);
    begin_pass();
    Bucket bucket{.micro_step = micro_step, .is_boundary = micro_step + 1 == step_.setting().accumulation};
    for (std::size_t at = 0; at < order.size(); ++at) {
      const std::size_t layer = order[at];
      prepare_layer(order, at);
      for (std::uint16_t r = 0; r < step_.ranks(); ++r) {
        add_workspace(layer, r);
        if (zero().stage >= 2) add_gradients(layer, r);
      }
      policy_.activations->backward(step_, layer);
      remember_kernels(at);
      const auto& tensors = sizes_[layer].tensors;
      for (auto t = tensors.rbegin(); t != tensors.rend(); ++t) collect(bucket, *t);
    }
    reduce(bucket);
  }

  void begin_pass() {
    gathers_.assign(sizes_.size(), std::nullopt);
    kernels_.assign(sizes_.size(), {});
  }

  // Everything the layer's kernels wait for and free, before the activation policy adds them.
  void prepare_layer(const Order& order, std::size_t at) {
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) step_.use(r) = {};
    if (zero().stage == 3) gather(order, at);
  }

  void gather(const Order& order, std::size_t at) {
    const std::size_t layer = order[at];
    const LayerSizes& size = sizes_[layer];
    if (size.gathered == 0) return;
    std::vector<TaskId> after;
    std::vector<Effect> effects;
    const Bytes bytes(static_cast<double>(size.gathered) * element_bytes());
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) {
      const std::vector<TaskId> gate = gather_gate(order, at, r);
      for (const TaskId t : policy_.parameters->fetch(step_, r, layer, gate)) after.push_back(t);
      const BufferId buffer = step_.plan().buffer(step_.gpu_pool(r), gather_owner_, bytes);
      effects.push_back(allocate(buffer));
      step_.use(r).effects.push_back(free(buffer));
    }
    const TaskId task = step_.add("gather layer", gather_lane_, 0, static_cast<std::int32_t>(layer),
                                  collective(CollectiveKind::all_gather, bytes), after, effects);
    gathers_[at] = task;
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) step_.use(r).ready.push_back(task);
  }

  // What must have happened on rank r before the gather of the layer at position `at` may begin.
  std::vector<TaskId> gather_gate(const Order& order, std::size_t at, std::uint16_t r) {
    const auto thread = step_.rank(r).thread.tasks();
    std::vector<TaskId> gate(thread.begin(), thread.end());
    if (at == 0) return gate;
    std::int64_t between = 0;
    std::size_t begun = at - 1;
    while (begun > 0 && between + sizes_[order[begun]].gathered < zero().prefetch_bucket) {
      between += sizes_[order[begun--]].gathered;
    }
    if (gathers_[begun]) gate.push_back(*gathers_[begun]);
    if (begun > 0) gate.push_back(kernels_[begun - 1][r]);
    std::int64_t live = 0;
    for (std::size_t i = at; i-- > 0;) {
      live += sizes_[order[i]].gathered;
      if (live < zero().max_live) continue;
      if (i > 0) gate.push_back(kernels_[i - 1][r]);
      break;
    }
    return gate;
  }

  void remember_kernels(std::size_t at) {
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) {
      ensure(step_.rank(r).last_kernel.has_value(), "a layer has a kernel");
      kernels_[at].push_back(*step_.rank(r).last_kernel);
    }
  }

  void add_workspace(std::size_t layer, std::uint16_t r) {
    const Bytes bytes = step_.graph().layers[layer].workspace;
    if (bytes.value() > 0) add_short_lived(workspace_owner_, bytes, r);
  }
  void add_gradients(std::size_t layer, std::uint16_t r) {
    const auto elements = step_.graph().layers[layer].parameters();
    if (elements > 0) add_short_lived(gradient_owner_, Bytes(static_cast<double>(elements) * element_bytes()), r);
  }
  void add_short_lived(OwnerId owner, Bytes bytes, std::uint16_t r) {
    const BufferId buffer = step_.plan().buffer(step_.gpu_pool(r), owner, bytes);
    step_.use(r).effects.push_back(allocate(buffer));
    step_.use(r).effects.push_back(free(buffer));
  }

  void collect(Bucket& bucket, std::int64_t elements) {
    if (bucket.elements > 0 && bucket.elements + elements > zero().reduce_bucket) reduce(bucket);
    bucket.tensors.push_back(elements);
    bucket.elements += elements;
  }

  // Reduces what the bucket holds and hands it to the optimizer; leaves the next bucket empty.
  void reduce(Bucket& bucket) {
    if (bucket.elements == 0) return;
    // ZeRO 0 and 1 accumulate locally and reduce once, at the boundary.
    if (bucket.is_boundary || zero().stage >= 2) {
      std::vector<TaskId> after;
      for (std::uint16_t r = 0; r < step_.ranks(); ++r) {
        after.push_back(*step_.rank(r).last_kernel);
        if (step_.rank(r).gradient) after.push_back(*step_.rank(r).gradient);
      }
      const Bytes bytes(static_cast<double>(bucket.elements) * element_bytes());
      const bool scatters = zero().stage > 0 && zero().reduce_scatter;
      const auto kind = scatters ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
      const TaskId reduced =
          step_.add("reduce bucket", reduce_lane_, 0, bucket.number, collective(kind, bytes), after);
      for (std::uint16_t r = 0; r < step_.ranks(); ++r) hand_over(bucket, reduced, r);
    }
    bucket.tensors.clear();
    bucket.elements = 0;
    ++bucket.number;
  }

  void hand_over(const Bucket& bucket, TaskId reduced, std::uint16_t r) {
    Rank& rank = step_.rank(r);
    rank.gradient = reduced;
    policy_.optimizer->gradients(step_, r, bucket, reduced);
    rank.reduced_buckets.push_back(*rank.gradient);
    if (rank.reduced_buckets.size() <= buckets_in_flight) return;
    rank.compute.also(rank.reduced_buckets.front());
    rank.reduced_buckets.pop_front();
  }

  void gather_updated() {
    std::vector<TaskId> after;
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) {
      const auto thread = step_.rank(r).thread.tasks();
      after.insert(after.end(), thread.begin(), thread.end());
      if (step_.rank(r).last_kernel) after.push_back(*step_.rank(r).last_kernel);
    }
    const Bytes bytes(static_cast<double>(total_) * element_bytes());
    const TaskId task = step_.add("gather updated parameters", gather_lane_, 0, -1,
                                  collective(CollectiveKind::all_gather, bytes), after);
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) step_.rank(r).thread.also(task);
  }

  Work collective(CollectiveKind kind, Bytes bytes) const {
    const Setting& s = step_.setting();
    if (s.world == 1) return Delay{};
    return Collective{kind, bytes, static_cast<std::int32_t>(s.world), 0, s.ranks};
  }

  Step step_;
  Policy& policy_;
  std::vector<LayerSizes> sizes_;
  std::int64_t total_ = 0;
  LaneId gather_lane_{}, reduce_lane_{};
  OwnerId gather_owner_{}, gradient_owner_{}, workspace_owner_{};
  std::vector<std::optional<TaskId>> gathers_;  // by position in the pass
  std::vector<std::vector<TaskId>> kernels_;    // last kernel of the layer, by position and rank
};

}  // namespace

Plan build_plan(const Setting& setting, Policy& policy, std::int32_t iterations) {
  ensure(iterations > 0, "a plan has one iteration at least");
  return Walker(setting, policy).run(iterations);
}

}  // namespace tidegate
