#include "sim/policy/step.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/base/error.hpp"
#include "sim/policy/bindings.hpp"

namespace tidegate {
namespace {

std::vector<TaskId> joined(std::span<const TaskId> a, std::span<const TaskId> b) {
  std::vector<TaskId> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

}  // namespace

Step::Step(const Setting& setting)
    : setting_(setting),
      ranks_(setting.layout.ranks()),
      pieces_(pieces_of(setting.graph, setting.layout.parallel())),
      segments_(setting.graph, setting.layout.ranks()),
      passing_gradients_(setting.layout.ranks()) {
  ensure(ranks() <= setting.machine.gpu_count(), "a rank has a GPU of its own");
  setup_lane_ = plan_.lane("setup", 0);
  add_groups();
  workspace_owner_ = plan_.owner("workspace");
  gradient_owner_ = plan_.owner("gradients");
  for (std::uint16_t r = 0; r < ranks(); ++r) add_rank(r);
  add_pools();
  for (std::size_t s = 0; s < layout().stages() && layout().stages() > 1; ++s) {
    stage_graphs_.push_back(stage_graph(graph(), pieces_, s, layout().stages()));
  }
  for (std::uint16_t s = 0; s < layout().stages(); ++s) {
    shards_.push_back(shards_of(graph_of(layout().first_rank(s))));
  }
}

std::int64_t Step::shards_of(const LayerGraph& part) const {
  std::int64_t all = 0;
  for (const Layer& layer : part.layers) {
    for (const Operator& op : layer.operators) {
      for (const Parameter& p : op.parameters) all += shard(p.elements);
    }
  }
  return all;
}

void Step::add_groups() {
  data_groups_.resize(layout().stages());
  tensor_groups_.resize(layout().stages());
  for (std::uint16_t s = 0; s < layout().stages(); ++s) {
    const auto data = layout().data_groups(s);
    for (std::size_t i = 0; i < data.size(); ++i) {
      const bool is_only = data.size() == 1 && layout().stages() == 1;
      const std::string number = is_only ? "" : std::to_string(data[i].first);
      data_groups_[s].push_back({data[i], plan_.lane("collectives" + number, data[i].first)});
    }
    for (const RankGroup& group : layout().tensor_groups(s)) {
      const std::string name = "tensor" + std::to_string(group.first);
      tensor_groups_[s].push_back({group, plan_.lane(name, group.first)});
    }
  }
}

void Step::add_rank(std::uint16_t r) {
  const std::string name = "rank" + std::to_string(r) + ".";
  ranks_[r].main = plan_.lane(name + "main", r);
  ranks_[r].gpu = plan_.lane(name + "gpu", r);
  ranks_[r].h2d = plan_.lane(name + "h2d", r);
  ranks_[r].d2h = plan_.lane(name + "d2h", r);
  const Gpu& gpu = setting_.machine.gpu(r);
  gpu_pools_.push_back(
      plan_.pool("gpu" + std::to_string(r), gpu_place(r), gpu.memory - gpu.context));
  // PyTorch keeps a workspace for each cuBLAS handle and stream, and a handle for each thread: that
  // of forward and autograd's (aten/src/ATen/cuda/CublasHandlePool.cpp).
  for (int handle = 0; handle < 2; ++handle) {
    reserve(gpu_pools_.back(), "cuBLAS workspaces", gpu.blas_workspace);
  }
}

void Step::add_pools() {
  const Machine& machine = setting_.machine;
  const auto nodes = static_cast<std::uint16_t>(machine.nodes_here());
  for (std::uint16_t n = 0; n < nodes; ++n) {
    const std::string name = nodes > 1 ? "node" + std::to_string(n) + ".host" : "host";
    host_pools_.push_back(plan_.pool(name, {Tier::host, n}, machine.host().memory));
  }
  for (std::uint16_t p = 0; p < machine.paths().size(); ++p) {
    path_pools_.push_back(
        plan_.pool(machine.paths()[p].name, {Tier::storage, p}, machine.paths()[p].capacity));
  }
}

const LayerGraph& Step::graph_of(std::uint16_t rank) const {
  return stage_graphs_.empty() ? graph() : stage_graphs_[layout().stage_of(rank)];
}

std::size_t Step::node_of(std::uint16_t rank) const {
  return static_cast<std::size_t>(setting_.machine.node_of_gpu(rank));
}

std::uint16_t Step::path_of(std::uint16_t rank, std::uint16_t path) const {
  return setting_.machine.path_of(static_cast<std::int32_t>(node_of(rank)), path);
}

Place Step::host_place(std::uint16_t rank) const {
  return {Tier::host, setting_.machine.numa_of_rank(rank)};
}

void Step::reserve(PoolId pool, const std::string& owner, Bytes bytes) {
  if (bytes.value() > 0) standing_.push_back(plan_.buffer(pool, plan_.owner(owner), bytes));
}

Bytes Step::standing(PoolId pool) const {
  Bytes all;
  for (const BufferId b : standing_) {
    const Buffer& buffer = plan_.buffer_of(b);
    if (buffer.pool == pool) all += Bytes(static_cast<double>(buffer.bytes));
  }
  return all;
}

void Step::reserve_process(std::uint16_t rank, const std::string& owner, Bytes bytes) {
  if (bytes.value() <= 0) return;
  processes_.push_back(plan_.buffer(host_pool(rank), plan_.owner(owner), bytes));
}

void Step::at_start(const char* task, std::initializer_list<Held> held) {
  StartTask start{.name = task, .buffers = {}};
  for (const auto& [owner, bytes] : held) {
    for (std::uint16_t r = 0; r < ranks() && bytes.value() > 0; ++r)
      start.buffers.push_back(plan_.buffer(host_pool(r), plan_.owner(owner), bytes));
  }
  start_tasks_.push_back(std::move(start));
}

Bytes Step::pinned(Bytes bytes) const {
  if (bytes.value() <= 0) return Bytes(0);
  if (!setting_.pins_powers_of_two) return bytes;
  int exponent = 0;
  const bool is_power = std::frexp(bytes.value(), &exponent) == 0.5;
  return Bytes(std::ldexp(1.0, is_power ? exponent - 1 : exponent));
}

TaskId Step::add(const char* name, LaneId lane, std::uint16_t rank, std::int32_t item,
                 const Work& work, std::span<const TaskId> after, std::span<const Effect> effects) {
  return plan_.add({name, lane, rank, item}, work, after, effects);
}

TaskId Step::on_thread(const char* name, std::uint16_t rank, std::int32_t item, const Work& work,
                       std::span<const TaskId> also_after, std::span<const Effect> effects) {
  Rank& r = ranks_[rank];
  const auto thread = r.thread.tasks();
  waits_.assign(thread.begin(), thread.end());
  waits_.insert(waits_.end(), also_after.begin(), also_after.end());
  const TaskId task = add(name, r.main, rank, item, work, waits_, effects);
  r.thread.set(task);
  return task;
}

TaskId Step::on_gpu(const char* name, std::uint16_t rank, std::int32_t item,
                    std::vector<Kernel> kernels, std::span<const TaskId> also_after,
                    std::span<const Effect> effects) {
  return on_gpu(name, rank, item, plan_.work(Compute{rank, std::move(kernels)}), also_after,
                effects);
}

TaskId Step::on_gpu(const char* name, std::uint16_t rank, std::int32_t item, WorkId kernels,
                    std::span<const TaskId> also_after, std::span<const Effect> effects) {
  Rank& r = ranks_[rank];
  const auto thread = r.thread.tasks(), compute = r.compute.tasks();
  waits_.assign(thread.begin(), thread.end());
  waits_.insert(waits_.end(), also_after.begin(), also_after.end());
  waits_.insert(waits_.end(), compute.begin(), compute.end());
  const TaskId task = plan_.add({name, r.gpu, rank, item}, kernels, waits_, effects);
  r.compute.clear();
  r.last_kernel = task;
  return task;
}

TaskId Step::to_host(const char* name, std::uint16_t rank, std::int32_t item, Bytes bytes,
                     std::span<const TaskId> after, std::span<const Effect> effects) {
  return add(name, ranks_[rank].d2h, rank, item, Copy{gpu_place(rank), host_place(rank), bytes},
             after, effects);
}

TaskId Step::to_gpu(const char* name, std::uint16_t rank, std::int32_t item, Bytes bytes,
                    std::span<const TaskId> after, std::span<const Effect> effects) {
  return add(name, ranks_[rank].h2d, rank, item, Copy{host_place(rank), gpu_place(rank), bytes},
             after, effects);
}

Work Step::collective(CollectiveKind kind, Bytes bytes, const RankGroup& group) const {
  if (group.size == 1) return Delay{};
  return Collective{.kind = kind,
                    .bytes = bytes,
                    .ranks = static_cast<std::int32_t>(group.size),
                    .first_gpu = group.first,
                    .gpus = group.here,
                    .stride = group.stride,
                    .per_node = group.per_node};
}

TaskId Step::tensor_collective(const char* name, const Communicator& communicator,
                               std::int32_t item, const Collective& what,
                               std::span<const TaskId> also_after) {
  const RankGroup& group = communicator.group;
  std::vector<TaskId> after(also_after.begin(), also_after.end());
  for (std::uint16_t i = 0; i < group.here; ++i) {
    const Rank& r = ranks_[group.rank(i)];
    const auto thread = r.thread.tasks(), compute = r.compute.tasks();
    after.insert(after.end(), thread.begin(), thread.end());
    after.insert(after.end(), compute.begin(), compute.end());
    if (r.last_kernel) after.push_back(*r.last_kernel);
  }
  return add(name, communicator.lane, group.first, item, collective(what.kind, what.bytes, group),
             after);
}

std::vector<BufferId>& Step::kept(const Visit& visit, std::uint16_t rank) {
  const auto micro_batch = static_cast<std::size_t>(visit.micro_batch);
  const std::size_t layers = graph().layers.size();
  if (kept_.size() <= micro_batch * layers * ranks()) {
    kept_.resize((micro_batch + 1) * layers * ranks());
  }
  return kept_[(micro_batch * layers + visit.layer) * ranks() + rank];
}

void Step::begin(std::int64_t iteration, Phase phase) {
  iteration_ = iteration;
  plan_.enter(static_cast<std::uint16_t>(iteration), phase);
}

std::vector<TaskId> Step::streams(const Rank& rank) const {
  std::vector<TaskId> tasks(rank.compute.tasks().begin(), rank.compute.tasks().end());
  if (rank.last_kernel) tasks.push_back(*rank.last_kernel);
  if (rank.gradient) tasks.push_back(*rank.gradient);
  return tasks;
}

namespace {

constexpr std::array phase_ends = {"forward done", "backward done", "update done", "step done"};

}  // namespace

void Step::end(Phase phase) {
  for (std::uint16_t r = 0; r < ranks(); ++r) {
    std::vector<Effect> effects;
    if (phase == Phase::update) {
      for (const BufferId b : passing_gradients_[r]) effects.push_back(free(b));
      passing_gradients_[r].clear();
    }
    const TaskId task = on_thread(phase_ends.at(static_cast<std::size_t>(phase)), r, -1, Delay{},
                                  streams(ranks_[r]), effects);
    plan_.mark(task, r);
  }
}

void Step::synchronize(std::uint16_t stage) {
  for (const std::uint16_t r : crew(stage)) {
    on_thread("synchronize", r, -1, Delay{}, streams(ranks_[r]));
  }
}

void Step::mark(Phase phase, std::uint16_t r) {
  while (moments_.size() < ranks()) {
    const auto rank = static_cast<std::uint16_t>(moments_.size());
    moments_.push_back(plan_.lane("rank" + std::to_string(rank) + ".moments", rank));
  }
  const auto after = joined(ranks_[r].thread.tasks(), streams(ranks_[r]));
  plan_.mark(
      add(phase_ends.at(static_cast<std::size_t>(phase)), moments_[r], r, -1, Delay{}, after), r);
}

void Step::open() {
  plan_.enter(0, Phase::other);
  std::vector<TaskId> before;
  std::vector<Effect> effects;
  for (const BufferId b : processes_) effects.push_back(allocate(b));
  const auto next = [&](const char* name) {
    before = {add(name, setup_lane_, 0, -1, Delay{}, before, effects)};
    effects.clear();
  };
  if (!start_tasks_.empty()) next("start processes");
  for (const StartTask& task : start_tasks_) {
    for (const BufferId b : task.buffers) effects.push_back(allocate(b));
    for (const BufferId b : task.buffers) effects.push_back(free(b));
    next(task.name);
  }
  for (const BufferId b : standing_) effects.push_back(allocate(b));
  next("set up");
  if (bindings != nullptr) bindings->set_up(before.front());
  for (Rank& r : ranks_) r.thread.set(before.front());
}

Plan Step::close(std::int32_t iterations) {
  plan_.enter(static_cast<std::uint16_t>(iterations - 1), Phase::other);
  std::vector<TaskId> after;
  for (const Rank& r : ranks_)
    after.insert(after.end(), r.thread.tasks().begin(), r.thread.tasks().end());
  std::vector<Effect> effects;
  for (const BufferId b : standing_) effects.push_back(free(b));
  for (const BufferId b : processes_) effects.push_back(free(b));
  add("tear down", setup_lane_, 0, -1, Delay{}, after, effects);
  return plan_.finish(iterations, layout().ranks());
}

}  // namespace tidegate
