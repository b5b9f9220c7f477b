#include "sim/policy/build_plan.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "models/base/error.hpp"
#include "sim/policy/schedule.hpp"

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
      : step_(setting),
        policy_(policy),
        gatherer_(step_, *policy.parameters),
        pieces_(pieces_of(setting.graph, setting.layout.parallel())),
        schedule_(
            pipeline_schedule(stages(), setting.layout.parallel().chunks, setting.accumulation)),
        buckets_(setting.layout.stages()) {
    step_.gatherer = &gatherer_;
    step_.gradients = this;
    flat_owner_ = step_.plan().owner("flat bucket");
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) {
      const std::string rank = "rank" + std::to_string(r);
      gradient_lanes_.push_back(step_.plan().lane(rank + ".gradients", r));
      if (stages() > 1) {
        send_lanes_.push_back(
            {step_.plan().lane(rank + ".send", r), step_.plan().lane(rank + ".send back", r)});
      }
    }
    produced_by_.resize(step_.ranks());
    tensors_.resize(setting.graph.layers.size());
    for (std::uint16_t s = 0; s < stages(); ++s) number_tensors(s);
  }

  Plan run(std::int32_t iterations) {
    reserve();
    policy_.parameters->prepare(step_);
    policy_.optimizer->prepare(step_);
    policy_.activations->prepare(step_);
    step_.open();
    for (std::int32_t i = 0; i < iterations; ++i) iteration(i);
    return step_.close(iterations);
  }

  void produced(const Visit& visit, const SubModule& part) override {
    const auto& tensors = tensors_[visit.layer];
    for (std::size_t op = part.last + 1; op-- > part.first && op < tensors.size();) {
      for (auto t = tensors[op].rbegin(); t != tensors[op].rend(); ++t) collect(visit.stage, *t);
    }
  }

 private:
  const ZeroOptions& zero() const { return step_.setting().zero; }
  std::uint16_t stages() const { return step_.layout().stages(); }
  double element_bytes() const { return bytes_per_element(step_.graph().dtype); }

  // Buckets name tensors by their place in the order of registration of the stage.
  void number_tensors(std::uint16_t stage) {
    std::size_t before = 0;
    for (std::size_t i = stage; i < pieces_.size(); i += stages()) {
      for (std::size_t l = pieces_[i].first; l < pieces_[i].last; ++l) {
        tensors_[l] = tensors_of(step_.graph().layers[l], before);
      }
    }
  }

  void reserve() {
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) {
      std::int64_t total = 0, persistent = 0;
      for (const Parameter& p : parameters_in_order(step_.graph_of(r))) {
        total += p.elements;
        if (p.elements < zero().persistence_threshold) persistent += p.elements;
      }
      const PoolId pool = step_.gpu_pool(r);
      const double whole = static_cast<double>(total);
      if (zero().stage < 2 && zero().contiguous_gradients) {
        step_.reserve(pool, "gradients", Bytes(whole * element_bytes()));
      }
      if (zero().stage < 3) {
        step_.reserve(pool, "parameters", Bytes(whole * element_bytes()));
      } else {
        step_.reserve(pool, "persistent parameters",
                      Bytes(static_cast<double>(persistent) * element_bytes()));
      }
      if (step_.world() > 1) {
        const auto bucket = static_cast<double>(std::min(zero().reduce_bucket, total));
        step_.reserve(pool, "reduce bucket", Bytes(bucket * element_bytes()));
      }
    }
    const Bytes base = step_.setting().machine.host().base_use;
    for (std::uint16_t r = 0; r < step_.ranks(); ++r) {
      const bool is_first_of_node = r == 0 || step_.node_of(r) != step_.node_of(r - 1);
      if (is_first_of_node) step_.reserve(step_.host_pool(r), "system and processes", base);
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
    if (zero().stage == 1 || zero().stage == 2) gather_updated();
    step_.end(Phase::update);
  }

  std::vector<Visit> visits(const Action& action) const {
    const Piece piece = pieces_[static_cast<std::size_t>(action.piece(stages()))];
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
    buckets_[stage] = {.micro_step = micro_step,
                       .is_boundary = micro_step + 1 == step_.setting().accumulation};
    for (const Visit& visit : visits) policy_.activations->add(step_, visit);
    reduce(stage);
  }

  // Forward ends on a rank with the forwards that fill the pipeline; backward is all the rest.
  void pipelined(std::int32_t i) {
    std::vector<bool> is_filled(stages(), false);
    sent_.clear();
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
      receive(action);
      const auto list = visits(action);
      gatherer_.begin(list, true);
      if (action.is_forward) {
        for (const Visit& visit : list) policy_.activations->add(step_, visit);
      } else {
        backward(list, action.stage, action.micro_batch);
      }
      send(action);
      if (step_.has_launches()) step_.synchronize(action.stage);
    }
    step_.begin(i, Phase::backward);
    step_.end(Phase::backward);
  }

  std::uint64_t key(std::int64_t piece, const Action& action, bool is_forward) const {
    const auto pieces = static_cast<std::uint64_t>(pieces_.size());
    const auto at =
        static_cast<std::uint64_t>(action.micro_batch) * pieces + static_cast<std::uint64_t>(piece);
    return 2 * at + (is_forward ? 1 : 0);
  }

  // The first kernels of an action wait for what its neighbour sent.
  void receive(const Action& action) {
    const auto found = sent_.find(key(action.piece(stages()), action, action.is_forward));
    if (found == sent_.end()) return;
    const std::uint16_t first = step_.layout().first_rank(action.stage);
    for (const std::uint16_t r : step_.crew(action.stage)) {
      step_.rank(r).compute.also(found->second[static_cast<std::size_t>(r - first)]);
    }
    sent_.erase(found);
  }

  // Activations go to the piece behind, their gradients to the piece before. Tensor-parallel ranks
  // hold the same activations: each sends its part, and the receivers gather (Megatron-LM's scatter
  // and gather); with sequence parallelism each has a part anyway.
  void send(const Action& action) {
    const std::int64_t piece = action.piece(stages());
    const std::int64_t to = action.is_forward ? piece + 1 : piece - 1;
    if (to < 0 || to == static_cast<std::int64_t>(pieces_.size())) return;
    const auto border = pieces_[static_cast<std::size_t>(std::max(piece, to))].first;
    const Layer& layer = step_.graph().layers[border];
    const auto t = static_cast<double>(step_.layout().parallel().tensor);
    const Bytes bytes = layer.input / (step_.graph().is_sequence_parallel ? 1 : t);
    const auto stage = static_cast<std::uint16_t>(to % stages());
    const std::uint16_t first = step_.layout().first_rank(action.stage);
    std::vector<TaskId> sent;
    for (const std::uint16_t r : step_.crew(action.stage)) {
      const auto peer = static_cast<std::uint16_t>(step_.layout().first_rank(stage) + r - first);
      const TaskId after[] = {*step_.rank(r).last_kernel};
      std::vector<TaskId> all(after, after + 1);
      const auto compute = step_.rank(r).compute.tasks();
      all.insert(all.end(), compute.begin(), compute.end());
      sent.push_back(step_.add(action.is_forward ? "send activations" : "send gradients",
                               send_lanes_[r][action.is_forward ? 0 : 1], r,
                               static_cast<std::int32_t>(border),
                               Copy{step_.gpu_place(r), step_.gpu_place(peer), bytes}, all));
    }
    sent_[key(to, action, action.is_forward)] = std::move(sent);
  }

  void collect(std::uint16_t stage, const Bucket::Tensor& tensor) {
    Bucket& bucket = buckets_[stage];
    if (bucket.elements > 0 && bucket.elements + tensor.elements > zero().reduce_bucket) {
      reduce(stage);
    }
    bucket.tensors.push_back(tensor);
    bucket.elements += tensor.elements;
    for (const std::uint16_t r : step_.crew(stage)) produced_by_[r] = *step_.rank(r).last_kernel;
  }

  // Reduces what the bucket holds and hands it to the optimizer; leaves the next bucket empty.
  void reduce(std::uint16_t stage) {
    Bucket& bucket = buckets_[stage];
    if (bucket.elements == 0) return;
    // ZeRO 0 and 1 accumulate locally and reduce once, at the boundary.
    if (bucket.is_boundary || zero().stage >= 2) {
      for (const Communicator& c : step_.data_groups(stage)) reduce(bucket, c);
    }
    bucket.tensors.clear();
    bucket.elements = 0;
    ++bucket.number;
  }

  void reduce(const Bucket& bucket, const Communicator& communicator) {
    const RankGroup& group = communicator.group;
    const std::vector<TaskId> after = fill_bucket(bucket, group);
    const Bytes bytes(static_cast<double>(bucket.elements) * element_bytes());
    const bool scatters = zero().stage > 0 && zero().reduce_scatter;
    const auto kind = scatters ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    // The bucket's tensors are flattened into a buffer of their own, which lives until the slices
    // have left it (DeepSpeed stage 3, all-reduce of the flat bucket).
    std::vector<BufferId> flat;
    std::vector<Effect> effects;
    for (std::uint16_t i = 0; i < group.here && group.size > 1; ++i) {
      flat.push_back(step_.plan().buffer(step_.gpu_pool(group.rank(i)), flat_owner_, bytes));
      effects.push_back(allocate(flat.back()));
    }
    const TaskId reduced = step_.add("reduce bucket", communicator.lane, group.first, bucket.number,
                                     step_.collective(kind, bytes, group), after, effects);
    for (std::uint16_t i = 0; i < group.here; ++i) {
      hand_over(bucket, reduced, group.rank(i), flat.empty() ? std::optional<BufferId>() : flat[i]);
    }
  }

  // The kernels that fill the bucket on every rank, in the gradient stream.
  std::vector<TaskId> fill_bucket(const Bucket& bucket, const RankGroup& group) {
    std::vector<TaskId> filled;
    for (std::uint16_t i = 0; i < group.here; ++i) {
      const std::uint16_t r = group.rank(i);
      std::vector<TaskId> after = {produced_by_[r]};
      if (step_.rank(r).gradient) after.push_back(*step_.rank(r).gradient);
      filled.push_back(step_.add("fill bucket", gradient_lanes_[r], r, bucket.number,
                                 bucket_kernels(bucket, r, traffic_before), after));
    }
    return filled;
  }

  Work bucket_kernels(const Bucket& bucket, std::uint16_t r, double bytes_per_element) const {
    if (step_.world() == 1) return Delay{};
    constexpr std::int32_t launches = 3;
    return Compute{
        r,
        {Elementwise{Bytes(bytes_per_element * static_cast<double>(bucket.elements)), launches}}};
  }

  void hand_over(const Bucket& bucket, TaskId reduced, std::uint16_t r,
                 std::optional<BufferId> flat) {
    Rank& rank = step_.rank(r);
    rank.gradient = reduced;
    policy_.optimizer->gradients(step_, r, bucket, reduced);
    if (flat) {
      const TaskId last[] = {*rank.gradient};
      const Effect release[] = {free(*flat)};
      const auto world = static_cast<double>(step_.world());
      rank.gradient = step_.add("norm of slice", gradient_lanes_[r], r, bucket.number,
                                bucket_kernels(bucket, r, traffic_after / world), last, release);
    }
    rank.reduced_buckets.push_back(*rank.gradient);
    if (rank.reduced_buckets.size() <= buckets_in_flight) return;
    rank.compute.also(rank.reduced_buckets.front());
    rank.reduced_buckets.pop_front();
  }

  void gather_updated() {
    for (std::uint16_t s = 0; s < stages(); ++s) {
      for (const Communicator& c : step_.data_groups(s)) gather_updated(c);
    }
  }

  void gather_updated(const Communicator& communicator) {
    const RankGroup& group = communicator.group;
    std::vector<TaskId> after;
    for (std::uint16_t i = 0; i < group.here; ++i) {
      const Rank& rank = step_.rank(group.rank(i));
      const auto thread = rank.thread.tasks();
      after.insert(after.end(), thread.begin(), thread.end());
      if (rank.last_kernel) after.push_back(*rank.last_kernel);
    }
    double total = 0;
    for (const Parameter& p : parameters_in_order(step_.graph_of(group.first))) {
      total += static_cast<double>(p.elements);
    }
    const Work work =
        step_.collective(CollectiveKind::all_gather, Bytes(total * element_bytes()), group);
    const TaskId task =
        step_.add("gather updated parameters", communicator.lane, group.first, -1, work, after);
    for (std::uint16_t i = 0; i < group.here; ++i) step_.rank(group.rank(i)).thread.also(task);
  }

  Step step_;
  Policy& policy_;
  Gatherer gatherer_;
  std::vector<Piece> pieces_;
  std::vector<Action> schedule_;
  std::vector<std::vector<std::vector<Bucket::Tensor>>> tensors_;  // by layer and operator
  std::vector<Bucket> buckets_;                                    // by stage: being filled
  std::vector<TaskId> produced_by_;  // by rank: kernels of the bucket's last tensor
  OwnerId flat_owner_{};
  std::vector<LaneId> gradient_lanes_;             // by rank: kernels around reductions
  std::vector<std::array<LaneId, 2>> send_lanes_;  // by rank: to the piece behind, and before
  std::unordered_map<std::uint64_t, std::vector<TaskId>> sent_;  // by rank of the stage
};

}  // namespace

Plan build_plan(const Setting& setting, Policy& policy, std::int32_t iterations) {
  ensure(iterations > 0, "a plan has one iteration at least");
  return Walker(setting, policy).run(iterations);
}

}  // namespace tidegate
