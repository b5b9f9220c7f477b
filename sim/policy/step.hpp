#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/machine.hpp"
#include "sim/graph/layer_graph.hpp"
#include "sim/plan/plan.hpp"
#include "sim/policy/gatherer.hpp"
#include "sim/policy/loading.hpp"

/// The training step under construction: what every policy adds its tasks to.
namespace tidegate {

/// How data-parallel ranks share states (ZeRO), with DeepSpeed's names and defaults.
struct ZeroOptions {
  std::int64_t stage = 0;
  std::int64_t reduce_bucket = 500'000'000;   ///< elements
  std::int64_t prefetch_bucket = 50'000'000;  ///< elements gathered ahead of use
  std::int64_t max_live = 1'000'000'000;      ///< elements gathered at the same time
  std::int64_t max_reuse_distance =
      1'000'000'000;  ///< elements used between two uses that stay gathered
  std::int64_t persistence_threshold = 100'000;  ///< elements; smaller tensors stay gathered
  bool reduce_scatter = true;  ///< else all-reduce, after which each rank keeps its slice
};

/// What a policy may look at: the network's layers and the node, never a clock.
struct Setting {
  const LayerGraph& graph;
  const Machine& machine;
  ZeroOptions zero;
  std::int64_t accumulation = 1;
  std::uint16_t ranks = 1;  ///< data-parallel ranks of this node, one GPU each
  std::int64_t world = 1;   ///< data-parallel ranks of all nodes
  Loading loading;
  bool pins_powers_of_two = true;  ///< what Step::pinned rounds to
};

/// Gradients of some tensors, reduced together, in the order in which backward produces them.
struct Bucket {
  struct Tensor {
    std::int64_t elements = 0;  ///< unsharded
    std::size_t index = 0;      ///< in parameters_in_order
  };
  std::vector<Tensor> tensors;
  std::int64_t elements = 0;
  std::int32_t number = 0;  ///< within the micro-step
  std::int64_t micro_step = 0;
  bool is_boundary = false;  ///< of the last micro-step: the update follows
};

/// Hears of gradients as the plan's backward produces them.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// The backward kernels of a sub-module have been added on every rank.
  virtual void produced(std::size_t layer, const SubModule& part) = 0;
};

/// The moment a thread or stream has reached: what its next task has to wait for.
class Front {
 public:
  void set(TaskId task) { tasks_.assign(1, task); }
  void also(TaskId task) { tasks_.push_back(task); }
  void clear() { tasks_.clear(); }
  std::span<const TaskId> tasks() const { return tasks_; }

 private:
  std::vector<TaskId> tasks_;
};

/// One data-parallel rank: its lanes and where each of them stands.
struct Rank {
  LaneId main{};  ///< the thread that launches kernels and runs the optimizer loop
  LaneId gpu{};   ///< compute stream
  LaneId h2d{}, d2h{};
  Front thread;   ///< the main thread's moment
  Front compute;  ///< what the next kernel waits for besides its lane
  std::optional<TaskId> last_kernel;
  std::optional<TaskId> gradient;  ///< last task of the gradient stream
  std::deque<TaskId> reduced_buckets;
};

class Step {
 public:
  explicit Step(const Setting& setting);

  const Setting& setting() const { return setting_; }
  const LayerGraph& graph() const { return setting_.graph; }
  PlanBuilder& plan() { return plan_; }
  Rank& rank(std::uint16_t r) { return ranks_[r]; }
  std::uint16_t ranks() const { return setting_.ranks; }
  std::int64_t iteration() const { return iteration_; }

  PoolId gpu_pool(std::uint16_t rank) const { return gpu_pools_[rank]; }
  PoolId host_pool() const { return host_pool_; }
  PoolId path_pool(std::uint16_t path) const { return path_pools_[path]; }
  Place gpu_place(std::uint16_t rank) const { return {Tier::gpu, rank}; }
  Place host_place(std::uint16_t rank) const;
  /// Elements of a rank's shard of a tensor of `elements`.
  std::int64_t shard(std::int64_t elements) const {
    return (elements + setting_.world - 1) / setting_.world;
  }
  /// Sum of the shards of all tensors, each rounded up.
  std::int64_t shard_of_all() const { return shard_of_all_; }

  /// Bytes that stay from the first task of the plan to the last.
  void reserve(PoolId pool, const std::string& owner, Bytes bytes);
  /// Bytes that every process has before it loads anything.
  void reserve_process(const std::string& owner, Bytes bytes);
  /// Host memory that each rank holds during one task of start-up, before anything is reserved.
  struct Held {
    const char* owner;
    Bytes bytes;
  };
  void at_start(const char* task, std::initializer_list<Held> held);
  /// What one pinned allocation takes: the next power of two, as PyTorch's caching host allocator
  /// does since 1.11 (pytorch issue 95823), or what was asked for.
  Bytes pinned(Bytes bytes) const;

  TaskId add(const char* name, LaneId lane, std::uint16_t rank, std::int32_t item, const Work& work,
             std::span<const TaskId> after, std::span<const Effect> effects = {});
  /// Work of the main thread: follows its moment and becomes it.
  TaskId on_thread(const char* name, std::uint16_t rank, std::int32_t item, const Work& work,
                   std::span<const TaskId> also_after = {}, std::span<const Effect> effects = {});
  /// Kernels of the compute stream: after the thread that launches them and the compute front.
  TaskId on_gpu(const char* name, std::uint16_t rank, std::int32_t item,
                std::vector<Kernel> kernels, std::span<const TaskId> also_after,
                std::span<const Effect> effects = {});
  /// Pinned copies between a rank's GPU and its host memory, on the copy engine of the direction.
  TaskId to_host(const char* name, std::uint16_t rank, std::int32_t item, Bytes bytes,
                 std::span<const TaskId> after, std::span<const Effect> effects = {});
  TaskId to_gpu(const char* name, std::uint16_t rank, std::int32_t item, Bytes bytes,
                std::span<const TaskId> after, std::span<const Effect> effects = {});

  /// The kernels of one visit of a layer on every rank, sub-module by sub-module, each as soon as
  /// its parameters are gathered. `effects[r]` are added for rank r: allocations at the start of
  /// the first kernels, frees at the end of the last. Workspace comes and goes with the visit, and
  /// so do gradients from ZeRO-2 on; before, they grow during the first backward of an iteration
  /// and go with the end of its update (zero_grad sets them to none).
  void on_layer(const char* name, const Visit& visit, std::vector<std::vector<Effect>> effects);
  /// Who gathers parameters and who takes gradients; set by the walker.
  Gatherer* gatherer = nullptr;
  GradientSink* gradients = nullptr;
  /// The buffer that `layer` keeps from forward to backward on `rank`.
  std::optional<BufferId>& kept(std::size_t layer, std::uint16_t rank) {
    return kept_[layer * setting_.ranks + rank];
  }
  /// What the present layer has rebuilt for its backward, besides what it kept.
  std::optional<BufferId>& rebuilt(std::uint16_t rank) { return rebuilt_[rank]; }

  /// The queue of the data-parallel communicator: its collectives run one after another, in the
  /// order in which they were issued (one NCCL stream per process group).
  LaneId collectives() const { return collectives_; }
  /// A collective of all data-parallel ranks over a buffer of `bytes`; nothing for a single rank.
  Work collective(CollectiveKind kind, Bytes bytes) const;

  /// Tasks added from now on belong to this iteration and phase.
  void begin(std::int64_t iteration, Phase phase);
  /// The phase ends on each rank when its main thread, compute and gradient streams are done.
  void end(Phase phase);
  /// The task before everything: allocates what is reserved. Call after every prepare().
  void open();
  Plan close(std::int32_t iterations);

 private:
  Setting setting_;
  PlanBuilder plan_;
  std::vector<Rank> ranks_;
  std::vector<std::optional<BufferId>> kept_, rebuilt_;
  std::vector<PoolId> gpu_pools_, path_pools_;
  PoolId host_pool_{};
  LaneId setup_lane_{}, collectives_{};
  std::vector<BufferId> standing_;
  struct StartTask {
    const char* name;
    std::vector<BufferId> buffers;
  };
  std::vector<StartTask> start_tasks_;
  std::vector<BufferId> processes_;
  OwnerId workspace_owner_{}, gradient_owner_{};
  std::vector<std::vector<BufferId>> gradients_;  // by rank: kept until the update ends
  std::vector<bool> has_gradients_;               // by layer

  void add_gradients(const Visit& visit, std::vector<std::vector<Effect>>& effects);
  void add_short_lived(OwnerId owner, Bytes bytes, std::uint16_t rank,
                       std::vector<Effect>& effects);
  std::vector<Kernel> kernels_of(const Visit& visit, const SubModule& part) const;
  std::int64_t iteration_ = 0;
  std::int64_t shard_of_all_ = 0;
};

}  // namespace tidegate
