#include "sim/policy/zero_offload.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/policy/bindings.hpp"
#include "sim/policy/gradient_stream.hpp"
#include "sim/policy/optimizers.hpp"
#include "sim/policy/sub_groups.hpp"

namespace tidegate {
namespace {

constexpr double state_bytes = 12;   // fp32 parameter, two moments
constexpr double word = 4;           // fp32 parameter, moment or gradient
constexpr double adam_traffic = 28;  // on the GPU, as in resident_optimizer.cpp

class ZeroOffload final : public OptimizerPolicy {
 public:
  explicit ZeroOffload(const ZeroOffloadOptions& options) : options_(options) {}

  void prepare(Step& step) override {
    const bool updates_by_group = step.setting().zero.stage == 3;
    last_update_.assign(step.ranks(), {});
    lanes_.clear();
    groups_.clear();
    on_host_.clear();
    host_share_.clear();
    bound_.clear();
    waiting_.assign(step.ranks(), {});
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      const std::int64_t size = updates_by_group ? options_.sub_group_size : step.shard_of_all(r);
      groups_.push_back(pack_sub_groups(parameters_in_order(step.graph_of(r)), step.world(),
                                        std::max<std::int64_t>(size, 1)));
      divide(groups_.back(), updates_by_group);
      reserve(step, r);
      if (step.bindings != nullptr) bind(step, r);
      lanes_.push_back(step.plan().lane("rank" + std::to_string(r) + ".update", r));
    }
  }

  void gradients(Step& step, std::uint16_t rank, const Bucket& bucket, TaskId reduced) override {
    Shards shards = shards_of(step, bucket);
    const double elements = host_share_[rank] * static_cast<double>(shards.elements);
    if (step.bindings != nullptr) leave_on_gpu(step, rank, bucket, shards, reduced);
    if (elements <= 0) return;
    send_to_host(step, rank, bucket, elements, shards, reduced, last_update_[rank]);
  }

  void update(Step& step, std::uint16_t rank, const ParameterPolicy& parameters) override {
    Rank& r = step.rank(rank);
    if (r.gradient) r.thread.also(*r.gradient);
    if (step.bindings != nullptr && !bound_[rank].on_gpu.empty() && !parameters.stays_on_gpu())
      Bindings::refuse("an update on the GPU that nothing brings to where parameters live");
    update_on_gpu(step, rank);
    if (!options_.is_delayed) {
      for (const TaskId t : update_on_host(step, rank, parameters)) r.thread.also(t);
      return;
    }
    // A delayed update has until the end of the next iteration: wait for the previous one only.
    for (const TaskId t : last_update_[rank]) r.thread.also(t);
    put_in_place(step, rank, parameters);
    last_update_[rank] = update_beside(step, rank, parameters);
  }

  void add_least(const Step& step, std::uint16_t rank, LeastWork& least) const override {
    std::int64_t n = 0;
    for (const std::int64_t elements : on_host_[rank]) n += elements;
    add_least_gradients(step, rank, static_cast<double>(n), GradientsEnd::on_host, least);
    least.follows_backward = !options_.is_delayed;
    least.in_turn.emplace_back(AdamStep{rank, n, DType::fp32});
    least.in_turn.emplace_back(Cast{rank, n, DType::fp32, DType::bf16});
    const double on_gpu = (1 - host_share_[rank]) * static_cast<double>(step.shard_of_all(rank));
    if (on_gpu >= 1) least.update.emplace_back(Compute{rank, {adam_on_gpu(rank, on_gpu)}});
  }

  std::string describe() const override {
    std::string text = options_.host_share < 1
                           ? fmt::format("Twin-Flow: {:.0f} % of the optimizer on the host",
                                         100 * options_.host_share)
                           : std::string("ZeRO-Offload: optimizer on the host");
    if (options_.is_delayed) text += ", one step delayed";
    return text;
  }

 private:
  struct Bound {
    std::vector<std::vector<std::int32_t>> groups;  // tensors updated on the host, by sub-group
    std::set<std::int32_t> on_gpu;
    std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>> cut;  // on the GPU, on the host
  };

  // Which tensors are updated where, and where their states stand at the start.
  void bind(Step& step, std::uint16_t rank) {
    using Kind = Content::Kind;
    step.bindings->updates({.is_delayed = options_.is_delayed});
    Bound& bound = bound_.emplace_back();
    bound.groups = step.bindings->tensors_of(groups_[rank], step.layout().stage_of(rank));
    for (std::size_t i = 0; i < groups_[rank].size(); ++i)
      take_to_gpu(step, bound, i, groups_[rank][i].elements - on_host_[rank][i]);
    for (const Kind kind : {Kind::master, Kind::moments}) {
      for (const auto& group : bound.groups)
        step.bindings->stands(kind, group, rank, step.host_pool(rank));
      step.bindings->stands(kind, {bound.on_gpu.begin(), bound.on_gpu.end()}, rank,
                            step.gpu_pool(rank));
    }
  }

  // The first `elements` of a sub-group leave it for the GPU; where they end within a tensor, it is
  // cut.
  void take_to_gpu(Step& step, Bound& bound, std::size_t group, std::int64_t elements) const {
    std::vector<std::int32_t> staying;
    for (const std::int32_t t : bound.groups[group]) {
      const std::int64_t shard = step.shard(step.bindings->elements_of(t));
      if (shard <= elements) {
        bound.on_gpu.insert(t);
      } else if (elements > 0) {
        const auto [first, rest] = step.bindings->cut(t, elements);
        bound.cut[t] = {first, rest};
        bound.on_gpu.insert(first);
        staying.push_back(rest);
      } else {
        staying.push_back(t);
      }
      elements = std::max<std::int64_t>(0, elements - shard);
    }
    bound.groups[group] = std::move(staying);
  }

  // Slices that the GPU updates are added up there, and taken out of what goes to the host.
  void leave_on_gpu(Step& step, std::uint16_t rank, const Bucket& bucket, Shards& shards,
                    TaskId reduced) const {
    const Bound& bound = bound_[rank];
    std::vector<std::int32_t> staying, going;
    for (const std::int32_t t : shards.tensors) {
      const auto cut = bound.cut.find(t);
      if (cut != bound.cut.end()) {
        staying.push_back(cut->second.first);
        going.push_back(cut->second.second);
      } else {
        (bound.on_gpu.contains(t) ? staying : going).push_back(t);
      }
    }
    shards.tensors = std::move(going);
    const bool is_first = step.setting().zero.stage < 2 || bucket.micro_step == 0;
    const PoolId gpu = step.gpu_pool(rank);
    step.bindings->added(reduced, staying, rank, is_first, gpu, Content::Kind::sum, gpu);
  }

  // ZeRO-3 places whole sub-groups: the first floor((1 - share) · n) of n update on the GPU, the
  // others on the host (DeepSpeed stage3.py, subgroup_to_device). Before stage 3 DeepSpeed has no
  // such share; here the one group is cut.
  void divide(const std::vector<SubGroup>& groups, bool is_by_group) {
    const auto count = static_cast<double>(groups.size());
    const auto on_gpu = static_cast<std::size_t>((1 - options_.host_share) * count);
    double host = 0, all = 0;
    std::vector<std::int64_t> on_host;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const double share = is_by_group ? (i >= on_gpu ? 1.0 : 0.0) : options_.host_share;
      const auto elements = static_cast<double>(groups[i].elements);
      on_host.push_back(static_cast<std::int64_t>(share * elements));
      host += share * elements;
      all += elements;
    }
    on_host_.push_back(std::move(on_host));
    host_share_.push_back(all > 0 ? host / all : 0);
  }

  Bytes held(const Step& step, double bytes) const {
    return options_.is_pinned ? step.pinned(Bytes(bytes)) : Bytes(bytes);
  }

  // Which buffers there are and which are pinned: DeepSpeed runtime/zero/stage3.py and
  // stage_1_and_2.py. CPU Adam makes its moments unpinned.
  void reserve(Step& step, std::uint16_t r) const {
    const bool is_sharded = step.setting().zero.stage == 3;
    Bytes states, gradients;
    for (const std::int64_t elements : on_host_[r]) {
      const double one = word * static_cast<double>(elements);
      states += (is_sharded ? Bytes(one) : held(step, one)) + Bytes(2 * one);
      gradients += held(step, one);
    }
    // Gradients of sub-groups on the GPU are made in pinned memory first, whose block the pinned
    // cache keeps and gives to the next sub-group.
    if (is_sharded && options_.is_pinned && gradients.value() <= 0)
      gradients = step.pinned(Bytes(word * static_cast<double>(largest(groups_[r]))));
    const PoolId host = step.host_pool(r), gpu = step.gpu_pool(r);
    step.reserve(host, "optimizer states", states);
    step.reserve(host, "fp32 gradients", gradients);
    const auto whole = static_cast<double>(step.shard_of_all(r));
    const double on_gpu = (1 - host_share_[r]) * whole;
    step.reserve(gpu, "optimizer states", Bytes(state_bytes * on_gpu));
    if (is_sharded) {
      step.reserve(gpu, "fp32 gradients", Bytes(word * on_gpu));
      step.reserve(host, "16-bit gradients", held(step, 2 * whole));
    } else {
      reserve_buffers_of_whole_tensors(step, r);
    }
  }

  // Stages 1 and 2: new parameters wait in 16 bits for their copy up, a buffer on either side takes
  // the largest gradient, and accumulated gradients stay on the host, each tensor by itself.
  void reserve_buffers_of_whole_tensors(Step& step, std::uint16_t r) const {
    std::int64_t largest = 0;
    Bytes accumulated;
    for (const Parameter& p : parameters_in_order(step.graph_of(r))) {
      largest = std::max(largest, p.elements);
      accumulated += held(step, 2 * static_cast<double>(p.elements));
    }
    const double copies = 2 * host_share_[r] * static_cast<double>(step.shard_of_all(r));
    const double one = 2 * static_cast<double>(largest);
    step.reserve(step.host_pool(r), "16-bit parameter copies", held(step, copies));
    step.reserve(step.host_pool(r), "gradient staging", held(step, one));
    step.reserve(step.gpu_pool(r), "gradient staging", Bytes(one));
    if (step.setting().accumulation == 1) return;
    const double share = host_share_[r] / static_cast<double>(step.world());
    step.reserve(step.host_pool(r), "16-bit gradients", share * accumulated);
  }

  std::vector<TaskId> update_on_host(Step& step, std::uint16_t rank,
                                     const ParameterPolicy& parameters) {
    Rank& r = step.rank(rank);
    std::vector<TaskId> at(r.thread.tasks().begin(), r.thread.tasks().end());
    std::vector<TaskId> done;
    for (std::size_t i = 0; i < groups_[rank].size(); ++i) {
      if (on_host_[rank][i] == 0) continue;
      const TaskId updated = adam(step, rank, i, r.main, at);
      const TaskId narrow = cast(step, rank, i, r.main, {&updated, 1});
      const TaskId stored = store(step, rank, i, parameters, {&narrow, 1});
      at = {stored};  // DeepSpeed's copy back blocks the thread
      done.push_back(stored);
    }
    return done.empty() ? at : done;
  }

  // The update of a step beside the next one. Until that has ended, nothing may change that its
  // passes read: the new parameters wait on the host, in 16 bits where the passes do not read that
  // memory, to be put in place between the steps (Ren et al. 2021, ZeRO-Offload, figure 6).
  std::vector<TaskId> update_beside(Step& step, std::uint16_t rank,
                                    const ParameterPolicy& parameters) {
    const Rank& r = step.rank(rank);
    std::vector<TaskId> at(r.thread.tasks().begin(), r.thread.tasks().end());
    for (std::size_t i = 0; i < groups_[rank].size(); ++i) {
      if (on_host_[rank][i] == 0) continue;
      at = {adam(step, rank, i, lanes_[rank], at)};
      if (parameters.stays_on_gpu()) at = {cast(step, rank, i, lanes_[rank], at, true)};
      waiting_[rank].push_back(i);
    }
    return at;
  }

  void put_in_place(Step& step, std::uint16_t rank, const ParameterPolicy& parameters) {
    Rank& r = step.rank(rank);
    for (const std::size_t i : waiting_[rank]) {
      const std::vector<TaskId> at(r.thread.tasks().begin(), r.thread.tasks().end());
      const bool is_cast = parameters.stays_on_gpu();
      if (!is_cast) r.thread.set(cast(step, rank, i, r.main, at));
      r.thread.set(store(step, rank, i, parameters, r.thread.tasks()));
    }
    waiting_[rank].clear();
  }

  TaskId adam(Step& step, std::uint16_t rank, std::size_t group, LaneId lane,
              std::span<const TaskId> after) const {
    const TaskId task = step.add("adam", lane, rank, static_cast<std::int32_t>(group),
                                 AdamStep{rank, on_host_[rank][group], DType::fp32}, after);
    if (step.bindings != nullptr)
      step.bindings->updated(task, bound_[rank].groups[group], rank, step.host_pool(rank),
                             Content::Kind::sum32);
    return task;
  }

  // What waits is not yet where passes and gathers look for it.
  TaskId cast(Step& step, std::uint16_t rank, std::size_t group, LaneId lane,
              std::span<const TaskId> after, bool waits = false) const {
    const Cast work{rank, on_host_[rank][group], DType::fp32, DType::bf16};
    const TaskId task =
        step.add("cast parameters", lane, rank, static_cast<std::int32_t>(group), work, after);
    if (step.bindings == nullptr) return task;
    using Kind = Content::Kind;
    const PoolId host = step.host_pool(rank);
    const auto& tensors = bound_[rank].groups[group];
    if (waits) {
      step.bindings->moved(task, tensors, rank, {Kind::master, host}, {Kind::shard, host});
    } else {
      step.bindings->cast(task, tensors, rank, host);
    }
    return task;
  }

  TaskId store(Step& step, std::uint16_t rank, std::size_t group, const ParameterPolicy& parameters,
               std::span<const TaskId> after) const {
    Shards shards{on_host_[rank][group], {}};
    if (step.bindings != nullptr) shards.tensors = bound_[rank].groups[group];
    return parameters.store(step, rank, shards, static_cast<std::int32_t>(group), after);
  }

  void update_on_gpu(Step& step, std::uint16_t rank) const {
    const double n = (1 - host_share_[rank]) * static_cast<double>(step.shard_of_all(rank));
    if (n < 1) return;
    Rank& r = step.rank(rank);
    if (r.gradient) r.compute.also(*r.gradient);
    const TaskId task = step.on_gpu("adam on gpu", rank, -1, {adam_on_gpu(rank, n)}, {});
    if (step.bindings == nullptr) return;
    const std::vector<std::int32_t> tensors(bound_[rank].on_gpu.begin(), bound_[rank].on_gpu.end());
    constexpr Content::Kind written[] = {Content::Kind::shard};
    step.bindings->updated(task, tensors, rank, step.gpu_pool(rank), Content::Kind::sum, written);
  }

  Elementwise adam_on_gpu(std::uint16_t rank, double elements) const {
    return {Bytes(adam_traffic * elements), static_cast<std::int32_t>(groups_[rank].size())};
  }

  ZeroOffloadOptions options_;
  std::vector<Bound> bound_;                        // by rank, where the plan carries its meaning
  std::vector<std::vector<SubGroup>> groups_;       // by rank
  std::vector<std::vector<std::int64_t>> on_host_;  // by rank and sub-group: elements on the host
  std::vector<double> host_share_;                  // by rank: of all elements
  std::vector<LaneId> lanes_;
  std::vector<std::vector<TaskId>> last_update_;   // by rank, delayed: as yet not waited for
  std::vector<std::vector<std::size_t>> waiting_;  // by rank, delayed: sub-groups not put in place
};

}  // namespace

std::unique_ptr<OptimizerPolicy> zero_offload(const ZeroOffloadOptions& options) {
  return std::make_unique<ZeroOffload>(options);
}

ZeroOffloadOptions read_zero_offload(yaml::Map& options) {
  ZeroOffloadOptions o;
  o.sub_group_size = options.count_or("sub_group_size", o.sub_group_size, 1);
  o.is_delayed = options.flag_or("delayed_update", o.is_delayed);
  o.is_pinned = options.flag_or("pin_memory", o.is_pinned);
  return o;
}

std::unique_ptr<OptimizerPolicy> make_zero_offload(yaml::Map& options, const Machine&) {
  return zero_offload(read_zero_offload(options));
}

}  // namespace tidegate
