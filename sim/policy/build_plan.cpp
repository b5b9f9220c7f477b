#include "sim/policy/build_plan.hpp"

#include <algorithm>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

// Buckets whose reduction may be outstanding before the compute stream waits
// (DeepSpeed stage 3, max_param_reduce_events).
constexpr std::size_t buckets_in_flight = 2;

// Memory traffic of the kernels around a reduction, bytes per element of the bucket: gradients are
// copied into the bucket, scaled, and flattened (4 B each: read and write 16 bits); then each rank
// copies its slice (4 B) and takes its norm in double precision (cast 2 + 8 B, norm 8 B).
// assumed: counted from the sequence of kernels in DeepSpeed's stage 3, not measured.
constexpr double traffic_before = 12;
constexpr double traffic_after = 22;

// Tensors of a layer by operator, with their places in the order of registration; `before` counts
// the tensors of earlier layers and is moved on.
std::vector<std::vector<Bucket::Tensor>> tensors_of(const Layer& layer, std::size_t& before) {
  struct Place {
    std::size_t op, slot;
    std::int32_t order;
  };
  std::vector<std::vector<Bucket::Tensor>> tensors(layer.operators.size());
  std::vector<Place> places;
  for (std::size_t op = 0; op < layer.operators.size(); ++op) {
    for (const Parameter& p : layer.operators[op].parameters) {
      places.push_back({op, tensors[op].size(), p.order});
      tensors[op].push_back({p.elements, 0});
    }
  }
  std::ranges::stable_sort(places, {}, &Place::order);
  for (const Place& p : places) tensors[p.op][p.slot].index = before++;
  return tensors;
}

class Walker final : public GradientSink {
 public:
  Walker(const Setting& setting, Policy& policy)
      : step_(setting), policy_(policy), gatherer_(step_, *policy.parameters) {
    step_.gatherer = &gatherer_;
    step_.gradients = this;
    flat_owner_ = step_.plan().owner("flat bucket");
    for (std::uint16_t r = 0; r < setting.ranks; ++r) {
      gradient_lanes_.push_back(step_.plan().lane("rank" + std::to_string(r) + ".gradients", r));
    }
    std::size_t before = 0;
    for (std::size_t l = 0; l < setting.graph.layers.size(); ++l) {
      tensors_.push_back(tensors_of(setting.graph.layers[l], before));
      visits_.push_back({l, Pass::forward});
    }
    for (const Parameter& p : parameters_in_order(setting.graph)) {
      total_ += p.elements;
      if (p.elements < setting.zero.persistence_threshold) persistent_ += p.elements;
    }
    const auto back = policy.activations->backward_order(setting.graph);
    visits_.insert(visits_.end(), back.begin(), back.end());
  }

  Plan run(std::int32_t iterations) {
    reserve();
    add_loading(step_);
    policy_.parameters->prepare(step_);
    policy_.optimizer->prepare(step_);
    step_.open();
    for (std::int32_t i = 0; i < iterations; ++i) iteration(i);
    return step_.close(iterations);
  }

  void produced(std::size_t layer, const SubModule& part) override {
    const auto& tensors = tensors_[layer];
    for (std::size_t op = part.last + 1; op-- > part.first && op < tensors.size();) {
      for (auto t = tensors[op].rbegin(); t != tensors[op].rend(); ++t) collect(*t);
    }
  }

 private:
  const ZeroOptions& zero() const { return step_.setting().zero; }
  double element_bytes() const { return bytes_per_element(step_.graph().dtype); }

  void reserve() {
    const double whole = static_cast<double>(total_);
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) {
      const PoolId pool = step_.gpu_pool(r);
      if (zero().stage < 3) {
        step_.reserve(pool, "parameters", Bytes(whole * element_bytes()));
      } else {
        step_.reserve(pool, "persistent parameters",
                      Bytes(static_cast<double>(persistent_) * element_bytes()));
      }
      // Contiguous gradients: one flat bucket of the whole size, whether or not anyone else is
      // there to reduce with (DeepSpeed stage_1_and_2.py and stage3.py).
      if (step_.setting().world > 1 || zero().stage >= 2) {
        const bool is_whole = zero().stage >= 2;
        const auto bucket = static_cast<double>(is_whole ? zero().reduce_bucket
                                                         : std::min(zero().reduce_bucket, total_));
        step_.reserve(pool, "reduce bucket", Bytes(bucket * element_bytes()));
      }
    }
    const Host& host = step_.setting().machine.host();
    const bool knows_processes = host.process_use.value() > 0;
    step_.reserve_process(knows_processes ? "system" : "system and processes", host.base_use);
    step_.reserve_process("processes", static_cast<double>(step_.ranks()) * host.process_use);
  }

  void iteration(std::int32_t i) {
    for (std::int64_t m = 0; m < step_.setting().accumulation; ++m) {
      step_.begin(i, Phase::forward);
      gatherer_.begin(visits_, i > 0 || m > 0);
      const std::size_t layers = tensors_.size();
      for (std::size_t v = 0; v < layers; ++v) policy_.activations->add(step_, visits_[v]);
      step_.end(Phase::forward);
      step_.begin(i, Phase::backward);
      backward({visits_.begin() + static_cast<std::ptrdiff_t>(layers), visits_.end()}, m);
      step_.end(Phase::backward);
    }
    step_.begin(i, Phase::update);
    for (std::uint16_t r = 0; r < step_.ranks(); ++r)
      policy_.optimizer->update(step_, r, *policy_.parameters);
    if (zero().stage == 1 || zero().stage == 2) gather_updated();
    step_.end(Phase::update);
  }

  void backward(std::span<const Visit> visits, std::int64_t micro_step) {
    bucket_ = {.micro_step = micro_step,
               .is_boundary = micro_step + 1 == step_.setting().accumulation};
    for (const Visit& visit : visits) policy_.activations->add(step_, visit);
    reduce();
  }

  void collect(const Bucket::Tensor& tensor) {
    if (bucket_.elements > 0 && bucket_.elements + tensor.elements > zero().reduce_bucket) reduce();
    bucket_.tensors.push_back(tensor);
    bucket_.elements += tensor.elements;
    produced_by_.clear();
    for (std::uint16_t r = 0; r < step_.ranks(); ++r)
      produced_by_.push_back(*step_.rank(r).last_kernel);
  }

  // Reduces what the bucket holds and hands it to the optimizer; leaves the next bucket empty.
  void reduce() {
    if (bucket_.elements == 0) return;
    // ZeRO 0 and 1 accumulate locally and reduce once, at the boundary.
    if (bucket_.is_boundary || zero().stage >= 2) {
      const std::vector<TaskId> after = fill_bucket();
      const Bytes bytes(static_cast<double>(bucket_.elements) * element_bytes());
      const bool scatters = zero().stage > 0 && zero().reduce_scatter;
      const auto kind = scatters ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
      // The bucket's tensors are flattened into a buffer of their own, which lives until the slices
      // have left it (DeepSpeed stage 3, all-reduce of the flat bucket).
      std::vector<BufferId> flat;
      std::vector<Effect> effects;
      for (std::uint16_t r = 0; r < step_.ranks() && step_.setting().world > 1; ++r) {
        flat.push_back(step_.plan().buffer(step_.gpu_pool(r), flat_owner_, bytes));
        effects.push_back(allocate(flat.back()));
      }
      const TaskId reduced = step_.add("reduce bucket", step_.collectives(), 0, bucket_.number,
                                       step_.collective(kind, bytes), after, effects);
      for (std::uint16_t r = 0; r < step_.ranks(); ++r) hand_over(reduced, r, flat);
    }
    bucket_.tensors.clear();
    bucket_.elements = 0;
    ++bucket_.number;
  }

  // The kernels that fill the bucket on every rank, in the gradient stream.
  std::vector<TaskId> fill_bucket() {
    std::vector<TaskId> filled;
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) {
      std::vector<TaskId> after = {produced_by_[r]};
      if (step_.rank(r).gradient) after.push_back(*step_.rank(r).gradient);
      filled.push_back(step_.add("fill bucket", gradient_lanes_[r], r, bucket_.number,
                                 bucket_kernels(r, traffic_before), after));
    }
    return filled;
  }

  Work bucket_kernels(std::uint16_t r, double bytes_per_element) const {
    if (step_.setting().world == 1) return Delay{};
    constexpr std::int32_t launches = 3;
    return Compute{
        r,
        {Elementwise{Bytes(bytes_per_element * static_cast<double>(bucket_.elements)), launches}}};
  }

  void hand_over(TaskId reduced, std::uint16_t r, const std::vector<BufferId>& flat) {
    Rank& rank = step_.rank(r);
    rank.gradient = reduced;
    policy_.optimizer->gradients(step_, r, bucket_, reduced);
    if (!flat.empty()) {
      const TaskId last[] = {*rank.gradient};
      const Effect release[] = {free(flat[r])};
      const auto world = static_cast<double>(step_.setting().world);
      rank.gradient = step_.add("norm of slice", gradient_lanes_[r], r, bucket_.number,
                                bucket_kernels(r, traffic_after / world), last, release);
    }
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
    const TaskId task = step_.add("gather updated parameters", step_.collectives(), 0, -1,
                                  step_.collective(CollectiveKind::all_gather, bytes), after);
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) step_.rank(r).thread.also(task);
  }

  Step step_;
  Policy& policy_;
  Gatherer gatherer_;
  std::vector<std::vector<std::vector<Bucket::Tensor>>> tensors_;  // by layer and operator
  Bucket bucket_;                                                  // being filled
  std::vector<TaskId> produced_by_;  // by rank: kernels of the bucket's last tensor
  std::vector<Visit> visits_;        // of one micro-step: forward, then backward
  std::int64_t total_ = 0, persistent_ = 0;
  OwnerId flat_owner_{};
  std::vector<LaneId> gradient_lanes_;  // by rank: kernels around reductions
};

}  // namespace

Plan build_plan(const Setting& setting, Policy& policy, std::int32_t iterations) {
  ensure(iterations > 0, "a plan has one iteration at least");
  return Walker(setting, policy).run(iterations);
}

}  // namespace tidegate
