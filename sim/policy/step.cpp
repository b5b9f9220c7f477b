#include "sim/policy/step.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/base/error.hpp"

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
      ranks_(setting.ranks),
      kept_(setting.graph.layers.size() * setting.ranks),
      rebuilt_(setting.ranks),
      gradients_(setting.ranks),
      has_gradients_(setting.graph.layers.size(), false) {
  const Machine& machine = setting.machine;
  ensure(setting.ranks <= machine.gpu_count(), "a rank has a GPU of its own");
  setup_lane_ = plan_.lane("setup", 0);
  collectives_ = plan_.lane("collectives", 0);
  workspace_owner_ = plan_.owner("workspace");
  gradient_owner_ = plan_.owner("gradients");
  for (std::uint16_t r = 0; r < setting.ranks; ++r) {
    const std::string name = "rank" + std::to_string(r) + ".";
    ranks_[r].main = plan_.lane(name + "main", r);
    ranks_[r].gpu = plan_.lane(name + "gpu", r);
    ranks_[r].h2d = plan_.lane(name + "h2d", r);
    ranks_[r].d2h = plan_.lane(name + "d2h", r);
    const Gpu& gpu = machine.gpu(r);
    gpu_pools_.push_back(
        plan_.pool("gpu" + std::to_string(r), gpu_place(r), gpu.memory - gpu.context));
  }
  host_pool_ = plan_.pool("host", {Tier::host, 0}, machine.host().memory);
  for (std::uint16_t p = 0; p < machine.paths().size(); ++p) {
    path_pools_.push_back(
        plan_.pool(machine.paths()[p].name, {Tier::storage, p}, machine.paths()[p].capacity));
  }
  for (const Layer& layer : setting.graph.layers) {
    for (const Operator& op : layer.operators) {
      for (const Parameter& p : op.parameters) shard_of_all_ += shard(p.elements);
    }
  }
}

Place Step::host_place(std::uint16_t rank) const {
  return {Tier::host, setting_.machine.numa_of_rank(rank)};
}

void Step::reserve(PoolId pool, const std::string& owner, Bytes bytes) {
  if (bytes.value() > 0) standing_.push_back(plan_.buffer(pool, plan_.owner(owner), bytes));
}

void Step::reserve_process(const std::string& owner, Bytes bytes) {
  if (bytes.value() > 0) processes_.push_back(plan_.buffer(host_pool_, plan_.owner(owner), bytes));
}

void Step::at_start(const char* task, std::initializer_list<Held> held) {
  StartTask start{.name = task, .buffers = {}};
  for (const auto& [owner, bytes] : held) {
    for (std::uint16_t r = 0; r < ranks() && bytes.value() > 0; ++r)
      start.buffers.push_back(plan_.buffer(host_pool_, plan_.owner(owner), bytes));
  }
  start_tasks_.push_back(std::move(start));
}

Bytes Step::pinned(Bytes bytes) const {
  if (bytes.value() <= 0) return Bytes(0);
  if (!setting_.pins_powers_of_two) return bytes;
  return Bytes(std::exp2(std::ceil(std::log2(bytes.value()))));
}

TaskId Step::add(const char* name, LaneId lane, std::uint16_t rank, std::int32_t item,
                 const Work& work, std::span<const TaskId> after, std::span<const Effect> effects) {
  return plan_.add({name, lane, rank, item}, work, after, effects);
}

TaskId Step::on_thread(const char* name, std::uint16_t rank, std::int32_t item, const Work& work,
                       std::span<const TaskId> also_after, std::span<const Effect> effects) {
  Rank& r = ranks_[rank];
  const TaskId task =
      add(name, r.main, rank, item, work, joined(r.thread.tasks(), also_after), effects);
  r.thread.set(task);
  return task;
}

TaskId Step::on_gpu(const char* name, std::uint16_t rank, std::int32_t item,
                    std::vector<Kernel> kernels, std::span<const TaskId> also_after,
                    std::span<const Effect> effects) {
  Rank& r = ranks_[rank];
  std::vector<TaskId> after = joined(r.thread.tasks(), also_after);
  after.insert(after.end(), r.compute.tasks().begin(), r.compute.tasks().end());
  const TaskId task =
      add(name, r.gpu, rank, item, Compute{rank, std::move(kernels)}, after, effects);
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

Work Step::collective(CollectiveKind kind, Bytes bytes) const {
  if (setting_.world == 1) return Delay{};
  return Collective{kind, bytes, static_cast<std::int32_t>(setting_.world), 0, setting_.ranks};
}

void Step::add_short_lived(OwnerId owner, Bytes bytes, std::uint16_t rank,
                           std::vector<Effect>& effects) {
  if (bytes.value() <= 0) return;
  const BufferId buffer = plan_.buffer(gpu_pools_[rank], owner, bytes);
  effects.push_back(allocate(buffer));
  effects.push_back(free(buffer));
}

void Step::add_gradients(const Visit& visit, std::vector<std::vector<Effect>>& effects) {
  const auto elements = static_cast<double>(graph().layers[visit.layer].parameters());
  const Bytes bytes(elements * bytes_per_element(graph().dtype));
  const bool is_kept = setting_.zero.stage < 2;
  if (bytes.value() <= 0 || (is_kept && has_gradients_[visit.layer])) return;
  for (std::uint16_t r = 0; r < ranks(); ++r) {
    const BufferId buffer = plan_.buffer(gpu_pools_[r], gradient_owner_, bytes);
    effects[r].push_back(allocate(buffer));
    if (is_kept)
      gradients_[r].push_back(buffer);
    else
      effects[r].push_back(free(buffer));
  }
  has_gradients_[visit.layer] = true;
}

std::vector<Kernel> Step::kernels_of(const Visit& visit, const SubModule& part) const {
  const Layer& layer = graph().layers[visit.layer];
  if (visit.pass == Pass::recompute_core) return layer.core_kernels();
  std::vector<Kernel> kernels;
  for (std::size_t i = 0; i <= part.last - part.first && i + part.first < layer.operators.size();
       ++i) {
    const bool is_backward = visit.pass == Pass::backward;
    const Operator& op = layer.operators[is_backward ? part.last - i : part.first + i];
    const auto& list = is_backward ? op.backward : op.forward;
    kernels.insert(kernels.end(), list.begin(), list.end());
  }
  return kernels;
}

void Step::on_layer(const char* name, const Visit& visit,
                    std::vector<std::vector<Effect>> effects) {
  const Layer& layer = graph().layers[visit.layer];
  const auto item = static_cast<std::int32_t>(visit.layer);
  for (std::uint16_t r = 0; r < ranks(); ++r)
    add_short_lived(workspace_owner_, layer.workspace, r, effects[r]);
  if (visit.pass == Pass::backward) add_gradients(visit, effects);
  const bool is_core = visit.pass == Pass::recompute_core;
  const auto parts = gatherer->sub_modules(visit.layer);
  const std::size_t count = is_core ? 1 : parts.size();
  for (std::size_t i = 0; i < count; ++i) {
    const SubModule& part = parts[visit.pass == Pass::backward ? count - 1 - i : i];
    const Gatherer::Ready ready = is_core ? Gatherer::Ready{} : gatherer->next(*this);
    std::vector<TaskId> kernels;
    for (std::uint16_t r = 0; r < ranks(); ++r) {
      std::vector<Effect> mine;
      for (const Effect& e : effects[r]) {
        const bool at_start = e.kind == Effect::Kind::allocate;
        if (at_start ? i == 0 : i + 1 == count) mine.push_back(e);
      }
      if (!ready.frees.empty()) mine.push_back(free(ready.frees[r]));
      kernels.push_back(on_gpu(name, r, item, kernels_of(visit, part), ready.after, mine));
    }
    if (!is_core) gatherer->used(std::move(kernels));
    if (visit.pass == Pass::backward) gradients->produced(visit.layer, part);
  }
}

void Step::begin(std::int64_t iteration, Phase phase) {
  iteration_ = iteration;
  plan_.enter(static_cast<std::uint16_t>(iteration), phase);
}

void Step::end(Phase phase) {
  constexpr std::array names = {"forward done", "backward done", "update done", "step done"};
  for (std::uint16_t r = 0; r < ranks(); ++r) {
    std::vector<TaskId> streams;
    if (ranks_[r].last_kernel) streams.push_back(*ranks_[r].last_kernel);
    if (ranks_[r].gradient) streams.push_back(*ranks_[r].gradient);
    std::vector<Effect> effects;
    if (phase == Phase::update) {
      for (const BufferId b : gradients_[r]) effects.push_back(free(b));
      gradients_[r].clear();
    }
    const TaskId task =
        on_thread(names.at(static_cast<std::size_t>(phase)), r, -1, Delay{}, streams, effects);
    plan_.mark(task, r);
  }
  if (phase == Phase::update) has_gradients_.assign(has_gradients_.size(), false);
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
  return plan_.finish(iterations, setting_.ranks);
}

}  // namespace tidegate
