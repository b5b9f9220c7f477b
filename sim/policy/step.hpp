#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "models/machine.hpp"
#include "sim/graph/layer_graph.hpp"
#include "sim/plan/plan.hpp"
#include "sim/policy/gatherer.hpp"
#include "sim/policy/layout.hpp"
#include "sim/policy/loading.hpp"
#include "sim/policy/pieces.hpp"
#include "sim/policy/segment_table.hpp"
#include "sim/policy/segments.hpp"

/// The training step under construction: what every policy adds its tasks to.
namespace tidegate {

class Bindings;

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
  /// Stages 0 and 1: gradients have a buffer that lives as long as the run; else each comes to be
  /// in the first backward of an iteration and goes when the update has ended.
  bool contiguous_gradients = false;
};

/// What a policy may look at: the network's layers, the nodes of the plan (Machine::part) and who
/// does what on them; never a clock.
struct Setting {
  const LayerGraph& graph;
  const Machine& machine;
  ZeroOptions zero;
  std::int64_t accumulation = 1;  ///< micro-batches of an iteration
  Layout layout;
  Loading loading;
  bool pins_powers_of_two = true;  ///< what Step::pinned rounds to
  bool carries_meaning = false;    ///< the plan says what its tasks mean (sim/plan/meaning.hpp)
};

/// Effects by rank of a stage.
using StageEffects = std::vector<std::vector<Effect>>;

/// Slices of parameter tensors on one rank. `tensors` names them where the plan carries its
/// meaning.
struct Shards {
  std::int64_t elements = 0;
  std::vector<std::int32_t> tensors;
};

/// Gradients of some tensors, reduced together, in the order in which backward produces them.
struct Bucket {
  struct Tensor {
    std::int64_t elements = 0;  ///< unsharded
    std::size_t index = 0;      ///< in parameters_in_order of the stage
  };
  std::vector<Tensor> tensors;
  std::int64_t elements = 0;
  std::int32_t number = 0;  ///< within the micro-step
  std::int64_t micro_step = 0;
  bool is_boundary = false;  ///< of the last micro-step: the update follows
  std::uint16_t stage = 0;
};

/// Hears of gradients as the plan's backward produces them.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  /// The backward kernels of a sub-module have been added on every rank of the visit's stage.
  virtual void produced(const Visit& visit, const SubModule& part) = 0;
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

/// One rank of the plan: its lanes and where each of them stands.
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

/// A group of ranks with the queue of its communicator: its collectives run one after another, in
/// the order in which they were issued (one NCCL stream per process group).
struct Communicator {
  RankGroup group;
  LaneId lane{};
};

/// What a policy adds to the kernels of a segment on one rank.
struct Beside {
  std::vector<TaskId> launch_after;  ///< the launch thread waits, where it is modelled
  std::vector<TaskId> kernel_after;
  std::vector<Effect> effects;
  void clear() { launch_after.clear(), kernel_after.clear(), effects.clear(); }
};

/// A policy that has something to say about the operators of a visit.
class SegmentHooks {
 public:
  virtual ~SegmentHooks() = default;
  /// Whether every operator is a segment of its own.
  virtual bool is_by_operator() const { return false; }
  virtual void before(std::uint16_t rank, const Segment& segment, Beside& beside) = 0;
  virtual void behind(std::uint16_t /*rank*/, const Segment&, TaskId /*kernels*/) {}
};

class Step {
 public:
  explicit Step(const Setting& setting);

  const Setting& setting() const { return setting_; }
  const Layout& layout() const { return setting_.layout; }
  /// The whole network as one tensor-parallel rank sees it; and the layers of a rank's stage alone.
  const LayerGraph& graph() const { return setting_.graph; }
  const LayerGraph& graph_of(std::uint16_t rank) const;
  const std::vector<Piece>& pieces() const { return pieces_; }
  PlanBuilder& plan() { return plan_; }
  Rank& rank(std::uint16_t r) { return ranks_[r]; }
  std::uint16_t ranks() const { return layout().ranks(); }
  /// The ranks of a stage.
  auto crew(std::uint16_t stage) const {
    const std::uint16_t first = layout().first_rank(stage);
    const auto end = static_cast<std::uint16_t>(first + layout().ranks_per_stage());
    return std::views::iota(first, end);
  }
  std::int64_t iteration() const { return iteration_; }

  PoolId gpu_pool(std::uint16_t rank) const { return gpu_pools_[rank]; }
  PoolId host_pool(std::uint16_t rank) const { return host_pools_[node_of(rank)]; }
  /// `path` counts the paths of a rank's node.
  PoolId path_pool(std::uint16_t rank, std::uint16_t path) const {
    return path_pools_[path_of(rank, path)];
  }
  std::uint16_t path_of(std::uint16_t rank, std::uint16_t path) const;
  Place gpu_place(std::uint16_t rank) const { return {Tier::gpu, rank}; }
  Place host_place(std::uint16_t rank) const;
  std::size_t node_of(std::uint16_t rank) const;
  /// Data-parallel ranks of the whole cluster.
  std::int64_t world() const { return layout().data(); }
  /// Elements of a rank's shard of a tensor of `elements`.
  std::int64_t shard(std::int64_t elements) const { return (elements + world() - 1) / world(); }
  /// Sum of the shards of all tensors of the rank's stage, each rounded up.
  std::int64_t shard_of_all(std::uint16_t rank) const { return shards_[layout().stage_of(rank)]; }

  /// Bytes that stay from the first task of the plan to the last.
  void reserve(PoolId pool, const std::string& owner, Bytes bytes);
  /// All that has been reserved of a pool so far.
  Bytes standing(PoolId pool) const;
  /// Bytes that a process of the rank's node has before it loads anything.
  void reserve_process(std::uint16_t rank, const std::string& owner, Bytes bytes);
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
  TaskId on_gpu(const char* name, std::uint16_t rank, std::int32_t item, WorkId kernels,
                std::span<const TaskId> also_after, std::span<const Effect> effects = {});
  /// Pinned copies between a rank's GPU and its host memory, on the copy engine of the direction.
  TaskId to_host(const char* name, std::uint16_t rank, std::int32_t item, Bytes bytes,
                 std::span<const TaskId> after, std::span<const Effect> effects = {});
  TaskId to_gpu(const char* name, std::uint16_t rank, std::int32_t item, Bytes bytes,
                std::span<const TaskId> after, std::span<const Effect> effects = {});

  /// From now on the launches of kernels are tasks of the main thread, which may run ahead of the
  /// GPU by `queue` kernels. Without, launching costs the thread nothing.
  void model_launches(std::int32_t queue);
  bool has_launches() const { return !run_ahead_.empty(); }

  /// The kernels of one visit on every rank of its stage, as soon as their parameters are gathered.
  /// A segment is a sub-module, or what lies between two collectives, or an operator where the
  /// hooks ask for it. Workspace and gradients come and go with the visit, or with the operator.
  void on_layer(const char* name, const Visit& visit, SegmentHooks& hooks);
  /// The same with effects by rank of the stage: allocations at the start of the first kernels,
  /// frees at the end of the last. They may be those of stage_effects().
  void on_layer(const char* name, const Visit& visit, StageEffects& effects);
  /// Empty ones, for the next visit; they stay valid until asked for again.
  StageEffects& stage_effects();
  /// Who gathers parameters and who takes gradients; set by the walker.
  Gatherer* gatherer = nullptr;
  GradientSink* gradients = nullptr;
  /// Who says what tasks mean, if the plan carries it; set by the walker.
  Bindings* bindings = nullptr;
  /// The buffers that a micro-batch keeps of a layer from forward to backward on `rank`.
  std::vector<BufferId>& kept(const Visit& visit, std::uint16_t rank);

  const std::vector<Communicator>& data_groups(std::uint16_t stage) const {
    return data_groups_[stage];
  }
  /// None without tensor parallelism.
  const std::vector<Communicator>& tensor_groups(std::uint16_t stage) const {
    return tensor_groups_[stage];
  }
  /// A collective of the group over a buffer of `bytes`; a join of its ranks where it has one.
  Work collective(CollectiveKind kind, Bytes bytes, const RankGroup& group) const;
  /// A collective of a tensor-parallel group, behind whatever the next kernels of its ranks wait
  /// for; `what` says its kind and bytes.
  TaskId tensor_collective(const char* name, const Communicator& communicator, std::int32_t item,
                           const Collective& what, std::span<const TaskId> also_after = {});

  /// Tasks added from now on belong to this iteration and phase.
  void begin(std::int64_t iteration, Phase phase);
  /// The phase ends on each rank when its main thread, compute and gradient streams are done; the
  /// main thread waits for that.
  void end(Phase phase);
  /// The main threads of a stage wait for their GPUs.
  void synchronize(std::uint16_t stage);
  /// The same of some ranks, whose threads do not wait.
  void mark(Phase phase, std::uint16_t rank);
  /// The task before everything: allocates what is reserved. Call after every prepare().
  void open();
  Plan close(std::int32_t iterations);

 private:
  Setting setting_;
  PlanBuilder plan_;
  std::vector<Rank> ranks_;
  std::vector<Piece> pieces_;
  SegmentTable segments_;
  std::vector<TaskId> waits_;            // predecessors of the task being added
  Beside beside_;                        // of the segment being added
  std::vector<TaskId> segment_kernels_;  // by rank, of the segment added last
  StageEffects stage_effects_;
  std::vector<LayerGraph> stage_graphs_;     // with several stages
  std::vector<std::int64_t> shards_;         // by stage
  std::vector<std::vector<BufferId>> kept_;  // by micro-batch, layer and rank
  std::vector<PoolId> gpu_pools_, host_pools_, path_pools_;
  std::vector<LaneId> moments_;  // by rank: ends of phases that no thread waits for
  std::vector<TokenId> run_ahead_;
  std::int32_t launch_queue_ = 0;
  std::vector<std::vector<Communicator>> data_groups_, tensor_groups_;  // by stage
  LaneId setup_lane_{};
  std::vector<BufferId> standing_;
  struct StartTask {
    const char* name;
    std::vector<BufferId> buffers;
  };
  std::vector<StartTask> start_tasks_;
  std::vector<BufferId> processes_;
  std::vector<std::vector<BufferId>> passing_gradients_;  // by rank: until the update has ended
  OwnerId workspace_owner_{}, gradient_owner_{};
  std::int64_t iteration_ = 0;

  void add_rank(std::uint16_t rank);
  void add_pools();
  void add_groups();
  std::int64_t shards_of(const LayerGraph& part) const;
  void add_short_lived(OwnerId owner, Bytes bytes, std::uint16_t rank,
                       std::vector<Effect>& effects);
  void add_short_lived(const Visit& visit, std::size_t first, std::size_t last, std::uint16_t rank,
                       std::vector<Effect>& effects);
  TaskId launch_and_run(const char* name, const Visit& visit, const Segment& segment,
                        std::uint16_t rank, const Beside& beside);
  std::vector<std::vector<TaskId>> communicate(const Visit& visit,
                                               std::span<const Collective> list);
  void wait_for(std::uint16_t stage, const std::vector<std::vector<TaskId>>& tasks);
  void on_segment(const char* name, const Visit& visit, const Segment& segment,
                  const Gatherer::Ready& ready, SegmentHooks& hooks);
  std::vector<TaskId> streams(const Rank& rank) const;
};

}  // namespace tidegate
