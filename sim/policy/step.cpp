#include "sim/policy/step.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

std::vector<TaskId> joined(std::span<const TaskId> a, std::span<const TaskId> b) {
  std::vector<TaskId> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

// Allocations at the start of the first kernels of a visit, frees at the end of the last.
class EffectsAround final : public SegmentHooks {
 public:
  EffectsAround(std::uint16_t first_rank, std::vector<std::vector<Effect>> effects)
      : first_rank_(first_rank), effects_(std::move(effects)) {}

  Beside before(std::uint16_t rank, const Segment& segment) override {
    Beside beside;
    for (const Effect& e : effects_[static_cast<std::size_t>(rank - first_rank_)]) {
      const bool at_start = e.kind == Effect::Kind::allocate;
      if (at_start ? segment.begins : segment.ends) beside.effects.push_back(e);
    }
    return beside;
  }

 private:
  std::uint16_t first_rank_;
  std::vector<std::vector<Effect>> effects_;
};

LayerGraph part_of(const LayerGraph& graph, std::span<const Piece> pieces, std::size_t stage,
                   std::size_t stages) {
  LayerGraph part = graph;
  part.layers.clear();
  for (std::size_t i = stage; i < pieces.size(); i += stages) {
    part.layers.insert(part.layers.end(),
                       graph.layers.begin() + static_cast<std::ptrdiff_t>(pieces[i].first),
                       graph.layers.begin() + static_cast<std::ptrdiff_t>(pieces[i].last));
  }
  return part;
}

}  // namespace

std::vector<Piece> pieces_of(const LayerGraph& graph, const Parallel& parallel) {
  const auto count = static_cast<std::size_t>(parallel.pipeline * parallel.chunks);
  const auto is_block = [](const Layer& l) { return l.kind == LayerKind::block; };
  const auto blocks = static_cast<std::size_t>(std::ranges::count_if(graph.layers, is_block));
  std::vector<Piece> pieces;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t wanted = blocks / count + (i < blocks % count ? 1 : 0);
    Piece piece{at, at};
    for (; wanted > 0; ++at) wanted -= is_block(graph.layers[at]) ? 1U : 0U;
    piece.last = i + 1 == count ? graph.layers.size() : at;
    pieces.push_back(piece);
  }
  return pieces;
}

Step::Step(const Setting& setting)
    : setting_(setting),
      ranks_(setting.layout.ranks()),
      passing_gradients_(setting.layout.ranks()) {
  ensure(ranks() <= setting.machine.gpu_count(), "a rank has a GPU of its own");
  setup_lane_ = plan_.lane("setup", 0);
  add_groups();
  workspace_owner_ = plan_.owner("workspace");
  gradient_owner_ = plan_.owner("gradients");
  for (std::uint16_t r = 0; r < ranks(); ++r) add_rank(r);
  add_pools();
  const auto pieces = pieces_of(graph(), layout().parallel());
  for (std::size_t s = 0; s < layout().stages() && layout().stages() > 1; ++s) {
    stage_graphs_.push_back(part_of(graph(), pieces, s, layout().stages()));
  }
  for (std::uint16_t s = 0; s < layout().stages(); ++s) {
    std::int64_t all = 0;
    for (const Parameter& p : parameters_in_order(graph_of(layout().first_rank(s)))) {
      all += shard(p.elements);
    }
    shards_.push_back(all);
  }
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

Bytes Step::pinned(Bytes bytes) {
  if (bytes.value() <= 0) return Bytes(0);
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

void Step::model_launches(std::int32_t queue) {
  launch_queue_ = queue;
  for (std::uint16_t r = 0; r < ranks() && run_ahead_.size() < ranks(); ++r) {
    run_ahead_.push_back(plan_.tokens("rank" + std::to_string(r) + ".launch queue", queue));
  }
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

std::vector<BufferId>& Step::kept(const Visit& visit, std::uint16_t rank) {
  const auto micro_batch = static_cast<std::uint64_t>(visit.micro_batch);
  return kept_[(micro_batch * graph().layers.size() + visit.layer) * ranks() + rank];
}

void Step::add_short_lived(OwnerId owner, Bytes bytes, std::uint16_t rank,
                           std::vector<Effect>& effects) {
  if (bytes.value() <= 0) return;
  const BufferId buffer = plan_.buffer(gpu_pools_[rank], owner, bytes);
  effects.push_back(allocate(buffer));
  effects.push_back(free(buffer));
}

Bytes Step::transient(const Visit& visit, std::size_t op) const {
  const Layer& layer = graph().layers[visit.layer];
  if (op >= layer.operators.size()) return layer.workspace;
  const bool is_backward = visit.pass == Pass::backward;
  const Bytes bytes = is_backward ? layer.backward_transient(op) : layer.forward_transient(op);
  // What the loss works on beside its logits.
  const bool is_loss = layer.kind == LayerKind::head && op + 1 == layer.operators.size();
  return is_loss ? std::max(bytes, layer.workspace) : bytes;
}

std::vector<Segment> Step::segments(const Visit& visit, const SubModule& part,
                                    bool by_operator) const {
  const auto& operators = graph().layers[visit.layer].operators;
  const bool is_backward = visit.pass == Pass::backward;
  std::vector<Segment> list;
  bool is_open = false;
  for (std::size_t i = 0; i <= part.last - part.first; ++i) {
    const std::size_t op = is_backward ? part.last - i : part.first + i;
    if (!is_open) list.push_back({op, op, false, false});
    list.back().first = std::min(list.back().first, op);
    list.back().last = std::max(list.back().last, op);
    is_open = !by_operator;
    if (op >= operators.size() || layout().parallel().tensor == 1) continue;
    const auto& behind =
        is_backward ? operators[op].backward_collectives : operators[op].forward_collectives;
    if (!behind.empty()) is_open = false;
    const bool is_beside_next = is_backward && op > part.first && op - 1 < operators.size() &&
                                !operators[op - 1].beside_backward.empty();
    if (is_beside_next) is_open = false;
  }
  return list;
}

std::vector<Kernel> Step::kernels_of(const Visit& visit, const Segment& segment) const {
  const Layer& layer = graph().layers[visit.layer];
  if (visit.pass == Pass::recompute_core) return layer.core_kernels();
  const bool is_backward = visit.pass == Pass::backward;
  std::vector<Kernel> kernels;
  for (std::size_t i = 0; i <= segment.last - segment.first; ++i) {
    const std::size_t at = is_backward ? segment.last - i : segment.first + i;
    if (at >= layer.operators.size()) continue;
    const Operator& op = layer.operators[at];
    const auto& list = is_backward ? op.backward : op.forward;
    kernels.insert(kernels.end(), list.begin(), list.end());
  }
  return kernels;
}

// Workspace and, where ZeRO partitions gradients, the gradients of operators [first, last].
std::vector<Effect> Step::short_lived(const Visit& visit, std::size_t first, std::size_t last,
                                      std::uint16_t rank) {
  const Layer& layer = graph().layers[visit.layer];
  Bytes workspace;
  std::int64_t elements = 0;
  for (std::size_t op = first; op <= last; ++op) {
    workspace = std::max(workspace, transient(visit, op));
    if (op >= layer.operators.size()) continue;
    for (const Parameter& p : layer.operators[op].parameters) elements += p.elements;
  }
  std::vector<Effect> effects;
  add_short_lived(workspace_owner_, workspace, rank, effects);
  const Bytes produced(static_cast<double>(elements) * bytes_per_element(graph().dtype));
  if (visit.pass != Pass::backward || produced == Bytes(0)) return effects;
  const bool passes = setting_.zero.stage < 2 && !setting_.zero.contiguous_gradients;
  if (passes && visit.micro_batch == 0) {
    passing_gradients_[rank].push_back(plan_.buffer(gpu_pools_[rank], gradient_owner_, produced));
    effects.push_back(allocate(passing_gradients_[rank].back()));
  } else if (passes || setting_.zero.stage >= 2) {
    add_short_lived(gradient_owner_, produced, rank, effects);
  }
  return effects;
}

TaskId Step::launch_and_run(const char* name, const Visit& visit, std::uint16_t rank,
                            std::vector<Kernel> kernels, const Beside& beside) {
  const auto item = static_cast<std::int32_t>(visit.layer);
  if (!has_launches())
    return on_gpu(name, rank, item, std::move(kernels), beside.kernel_after, beside.effects);
  const auto count = std::clamp(static_cast<std::int32_t>(kernels.size()), 1, launch_queue_);
  const Effect take[] = {acquire(run_ahead_[rank], count)};
  on_thread("launch", rank, item,
            Delay{static_cast<double>(count) * setting_.machine.host().launch}, beside.launch_after,
            take);
  std::vector<Effect> effects = beside.effects;
  effects.push_back(release(run_ahead_[rank], count));
  return on_gpu(name, rank, item, std::move(kernels), beside.kernel_after, effects);
}

// The tensor-parallel collectives of an operator in every group of the stage, after whatever the
// next kernels wait for. By rank of the stage: what comes behind them has to wait for.
std::vector<std::vector<TaskId>> Step::communicate(const Visit& visit,
                                                   std::span<const Collective> list) {
  const std::uint16_t first_rank = layout().first_rank(visit.stage);
  std::vector<std::vector<TaskId>> tasks(layout().ranks_per_stage());
  for (const Communicator& c : tensor_groups_[visit.stage]) {
    for (const Collective& what : list) {
      std::vector<TaskId> after;
      for (std::uint16_t i = 0; i < c.group.here; ++i) {
        const Rank& r = ranks_[c.group.rank(i)];
        const auto thread = r.thread.tasks(), compute = r.compute.tasks();
        after.insert(after.end(), thread.begin(), thread.end());
        after.insert(after.end(), compute.begin(), compute.end());
        if (r.last_kernel) after.push_back(*r.last_kernel);
      }
      const TaskId task =
          add(name_of(what.kind), c.lane, c.group.first, static_cast<std::int32_t>(visit.layer),
              collective(what.kind, what.bytes, c.group), after);
      for (std::uint16_t i = 0; i < c.group.here; ++i) {
        tasks[static_cast<std::size_t>(c.group.rank(i) - first_rank)].push_back(task);
      }
    }
  }
  return tasks;
}

void Step::wait_for(std::uint16_t stage, const std::vector<std::vector<TaskId>>& tasks) {
  for (const std::uint16_t r : crew(stage)) {
    for (const TaskId t : tasks[static_cast<std::size_t>(r - layout().first_rank(stage))]) {
      ranks_[r].compute.also(t);
    }
  }
}

void Step::on_layer(const char* name, const Visit& visit,
                    std::vector<std::vector<Effect>> effects) {
  const std::size_t operators = graph().layers[visit.layer].operators.size();
  const std::size_t last = std::max<std::size_t>(operators, 1) - 1;
  for (const std::uint16_t r : crew(visit.stage)) {
    const auto memory = short_lived(visit, 0, last, r);
    auto& mine = effects[static_cast<std::size_t>(r - layout().first_rank(visit.stage))];
    mine.insert(mine.end(), memory.begin(), memory.end());
  }
  EffectsAround hooks(layout().first_rank(visit.stage), std::move(effects));
  on_layer(name, visit, hooks);
}

// A segment of a visit on every rank of its stage, and what its tensor-parallel group exchanges.
std::vector<TaskId> Step::on_segment(const char* name, const Visit& visit, const Segment& segment,
                                     const Gatherer::Ready& ready, SegmentHooks& hooks) {
  const auto& operators = graph().layers[visit.layer].operators;
  const bool is_backward = visit.pass == Pass::backward;
  const bool is_core = visit.pass == Pass::recompute_core;
  const bool communicates = !is_core && segment.last < operators.size();
  std::vector<std::vector<TaskId>> beside_kernels(layout().ranks_per_stage());
  if (communicates && is_backward) {
    beside_kernels = communicate(visit, operators[segment.last].beside_backward);
  }
  std::vector<TaskId> kernels(ranks());
  for (const std::uint16_t r : crew(visit.stage)) {
    Beside beside = hooks.before(r, segment);
    if (hooks.is_by_operator()) {
      const auto memory = short_lived(visit, segment.first, segment.last, r);
      beside.effects.insert(beside.effects.end(), memory.begin(), memory.end());
    }
    if (!ready.after.empty()) beside.kernel_after.push_back(ready.after[r]);
    if (!ready.frees.empty()) beside.effects.push_back(free(ready.frees[r]));
    kernels[r] = launch_and_run(name, visit, r, kernels_of(visit, segment), beside);
    hooks.behind(r, segment, kernels[r]);
  }
  wait_for(visit.stage, beside_kernels);
  if (communicates) {
    const Operator& op = operators[is_backward ? segment.first : segment.last];
    wait_for(visit.stage,
             communicate(visit, is_backward ? op.backward_collectives : op.forward_collectives));
  }
  return kernels;
}

void Step::on_layer(const char* name, const Visit& visit, SegmentHooks& hooks) {
  const bool is_core = visit.pass == Pass::recompute_core;
  const bool is_backward = visit.pass == Pass::backward;
  const auto parts = gatherer->sub_modules(visit.layer);
  const std::size_t count = is_core ? 1 : parts.size();
  for (std::size_t i = 0; i < count; ++i) {
    const SubModule& part = parts[is_backward ? count - 1 - i : i];
    const Gatherer::Ready ready = is_core ? Gatherer::Ready{} : gatherer->next(*this);
    auto list = is_core ? std::vector<Segment>{{part.first, part.last, true, true}}
                        : segments(visit, part, hooks.is_by_operator());
    list.front().begins = i == 0;
    list.back().ends = i + 1 == count;
    std::vector<TaskId> kernels;
    for (const Segment& segment : list) {
      Gatherer::Ready mine;
      if (&segment == &list.front()) mine.after = ready.after;
      if (&segment == &list.back()) mine.frees = ready.frees;
      kernels = on_segment(name, visit, segment, mine, hooks);
    }
    if (!is_core) gatherer->used(std::move(kernels));
    if (is_backward) gradients->produced(visit, part);
  }
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
  std::vector<Effect> effects;
  for (const BufferId b : standing_) effects.push_back(allocate(b));
  const TaskId first = add("set up", setup_lane_, 0, -1, Delay{}, {}, effects);
  for (Rank& r : ranks_) r.thread.set(first);
}

Plan Step::close(std::int32_t iterations) {
  plan_.enter(static_cast<std::uint16_t>(iterations - 1), Phase::other);
  std::vector<TaskId> after;
  for (const Rank& r : ranks_)
    after.insert(after.end(), r.thread.tasks().begin(), r.thread.tasks().end());
  std::vector<Effect> effects;
  for (const BufferId b : standing_) effects.push_back(free(b));
  add("tear down", setup_lane_, 0, -1, Delay{}, after, effects);
  return plan_.finish(iterations, layout().ranks());
}

}  // namespace tidegate
