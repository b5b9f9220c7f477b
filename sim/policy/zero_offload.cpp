#include "sim/policy/zero_offload.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/policy/gradient_stream.hpp"
#include "sim/policy/optimizers.hpp"
#include "sim/policy/sub_groups.hpp"

namespace tidegate {
namespace {

constexpr double state_bytes = 12;   // fp32 parameter, two moments
constexpr double adam_traffic = 28;  // on the GPU, as in resident_optimizer.cpp

class ZeroOffload final : public OptimizerPolicy {
 public:
  explicit ZeroOffload(const ZeroOffloadOptions& options) : options_(options) {}

  void prepare(Step& step) override {
    const bool swaps_groups = step.setting().zero.stage == 3;
    last_update_.assign(step.ranks(), {});
    lanes_.clear();
    groups_.clear();
    for (std::uint16_t r = 0; r < step.ranks(); ++r) {
      const std::int64_t size = swaps_groups ? options_.sub_group_size : step.shard_of_all(r);
      groups_.push_back(pack_sub_groups(parameters_in_order(step.graph_of(r)), step.world(),
                                        std::max<std::int64_t>(size, 1)));
      reserve(step, r);
      lanes_.push_back(step.plan().lane("rank" + std::to_string(r) + ".update", r));
    }
  }

  void gradients(Step& step, std::uint16_t rank, const Bucket& bucket, TaskId reduced) override {
    const double elements = options_.host_share * static_cast<double>(shard_of(step, bucket));
    if (elements <= 0) return;
    send_to_host(step, rank, bucket, elements, reduced);
  }

  void update(Step& step, std::uint16_t rank, const ParameterPolicy& parameters) override {
    Rank& r = step.rank(rank);
    if (r.gradient) r.thread.also(*r.gradient);
    update_on_gpu(step, rank);
    // A delayed update has until the end of the next iteration: wait for the previous one only.
    for (const TaskId t : last_update_[rank]) r.thread.also(t);
    last_update_[rank] = update_on_host(step, rank, parameters);
    if (options_.is_delayed) return;
    for (const TaskId t : last_update_[rank]) r.thread.also(t);
    last_update_[rank].clear();
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
  void reserve(Step& step, std::uint16_t r) const {
    const auto whole = static_cast<double>(step.shard_of_all(r));
    Bytes states, gradients;
    for (const SubGroup& g : groups_[r]) {
      const Bytes one(4 * options_.host_share * static_cast<double>(g.elements));
      // DeepSpeed pins the fp32 parameters and the gradients; CPU Adam makes its moments unpinned.
      const Bytes pinned = options_.is_pinned ? Step::pinned(one) : one;
      states += pinned + 2.0 * one;
      gradients += pinned;
    }
    step.reserve(step.host_pool(r), "optimizer states", states);
    step.reserve(step.host_pool(r), "fp32 gradients", gradients);
    const Bytes on_gpu(state_bytes * (1 - options_.host_share) * whole);
    step.reserve(step.gpu_pool(r), "optimizer states", on_gpu);
    if (step.setting().zero.stage == 3) {
      step.reserve(step.host_pool(r), "16-bit gradients", pinned_gradients(step, r));
    }
  }

  std::vector<TaskId> update_on_host(Step& step, std::uint16_t rank,
                                     const ParameterPolicy& parameters) {
    Rank& r = step.rank(rank);
    const LaneId lane = options_.is_delayed ? lanes_[rank] : r.main;
    std::vector<TaskId> at(r.thread.tasks().begin(), r.thread.tasks().end());
    std::vector<TaskId> done;
    for (std::size_t i = 0; i < groups_[rank].size(); ++i) {
      const auto item = static_cast<std::int32_t>(i);
      const auto n = static_cast<std::int64_t>(options_.host_share *
                                               static_cast<double>(groups_[rank][i].elements));
      if (n == 0) continue;
      const TaskId adam = step.add("adam", lane, rank, item, AdamStep{rank, n, DType::fp32}, at);
      const TaskId cast = step.add("cast parameters", lane, rank, item,
                                   Cast{rank, n, DType::fp32, DType::bf16}, {&adam, 1});
      const TaskId stored = parameters.store(step, rank, n, item, {&cast, 1});
      at = {options_.is_delayed ? cast : stored};  // DeepSpeed's copy back blocks the thread
      done.push_back(stored);
    }
    return done.empty() ? at : done;
  }

  void update_on_gpu(Step& step, std::uint16_t rank) const {
    const double n = (1 - options_.host_share) * static_cast<double>(step.shard_of_all(rank));
    if (n < 1) return;
    Rank& r = step.rank(rank);
    if (r.gradient) r.compute.also(*r.gradient);
    step.on_gpu(
        "adam on gpu", rank, -1,
        {Elementwise{Bytes(adam_traffic * n), static_cast<std::int32_t>(groups_[rank].size())}},
        {});
  }

  ZeroOffloadOptions options_;
  std::vector<std::vector<SubGroup>> groups_;  // by rank
  std::vector<LaneId> lanes_;
  std::vector<std::vector<TaskId>> last_update_;
};

}  // namespace

std::unique_ptr<OptimizerPolicy> zero_offload(const ZeroOffloadOptions& options) {
  return std::make_unique<ZeroOffload>(options);
}

std::unique_ptr<OptimizerPolicy> make_zero_offload(yaml::Map& options, const Machine&) {
  ZeroOffloadOptions o;
  o.sub_group_size = options.count_or("sub_group_size", o.sub_group_size, 1);
  o.is_delayed = options.flag_or("delayed_update", o.is_delayed);
  o.is_pinned = options.flag_or("pin_memory", o.is_pinned);
  return zero_offload(o);
}

}  // namespace tidegate
