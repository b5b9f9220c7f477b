#include "tests/sim/policy/toy.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/engine/simulate.hpp"
#include "sim/plan/check.hpp"
#include "sim/policy/build_plan.hpp"
#include "sim/policy/policy.hpp"
#include "sim/timeline/laws.hpp"
#include "tests/catch.hpp"
#include "tests/models/toy.hpp"

namespace tidegate::toy {

// 2 · 1000 · 1000 · 500 000 FLOP a second; 2 B · (2 · 5e8 + 1e6) = 2.002 GB of 100 GB/s.
Kernel lasting(double seconds) {
  return Gemm{1000, 1000, static_cast<std::int64_t>(seconds * 500'000), 1, DType::bf16};
}

SavedTensor saved(Bytes bytes, std::int32_t identity) {
  return {"t" + std::to_string(identity), bytes, identity,
          static_cast<std::int64_t>(bytes.value() / 2)};
}

Layer block(std::string name, const std::vector<Op>& ops) {
  Layer layer;
  layer.name = std::move(name);
  for (const Op& op : ops) {
    Operator o;
    o.name = op.name;
    o.forward = {lasting(op.forward)};
    o.backward = {lasting(op.backward)};
    o.saved = op.saved;
    layer.operators.push_back(std::move(o));
  }
  return layer;
}

Layer block(const Op& op) { return block(op.name, {op}); }

LayerGraph graph(std::vector<Layer> layers) {
  LayerGraph g;
  g.layers = std::move(layers);
  g.tokens = 1;
  g.sequences = 1;
  return g;
}

Machine node(int gpus, std::int32_t nodes, const std::function<void(Gpu&, int)>& change) {
  std::vector<Gpu> list;
  for (int i = 0; i < gpus; ++i) {
    list.push_back(gpu());
    if (change) change(list.back(), i);
  }
  Host cpu = host();
  cpu.numa_nodes = gpus;
  cpu.cores = 2 * gpus;
  Fabric links = fabric();
  links.nodes = nodes;
  links.per_node = 10_GBps;
  StoragePath path = drive();
  path.gpudirect = true;
  return machine(std::move(list), path, links, cpu);
}

std::vector<TaskId> Run::all(const std::string& wanted, std::optional<int> rank,
                             std::optional<int> iteration) const {
  std::vector<TaskId> list;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    const Task& task = plan.tasks[t];
    if (name(TaskId{t}) != wanted || (rank && task.rank != *rank)) continue;
    if (!iteration || task.iteration == *iteration) list.push_back(TaskId{t});
  }
  return list;
}

std::vector<TaskId> Run::ran(const std::string& wanted, std::optional<int> rank,
                             std::optional<int> iteration) const {
  std::vector<TaskId> list = all(wanted, rank, iteration);
  std::erase_if(list, [this](TaskId t) { return !is_run(t); });
  return list;
}

double Run::file_bytes(Direction direction, std::optional<int> iteration) const {
  double bytes = 0;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    const auto* file = std::get_if<FileIo>(&plan.work(TaskId{t}));
    if (file == nullptr || file->direction != direction || !is_run(TaskId{t})) continue;
    if (!iteration || plan.tasks[t].iteration == *iteration) bytes += file->bytes.value();
  }
  return bytes;
}

double Run::copied_bytes(Tier from, Tier to, std::optional<int> iteration) const {
  double bytes = 0;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    const auto* copy = std::get_if<Copy>(&plan.work(TaskId{t}));
    if (copy == nullptr || copy->from.tier != from || copy->to.tier != to) continue;
    if (!is_run(TaskId{t})) continue;
    if (!iteration || plan.tasks[t].iteration == *iteration) bytes += copy->bytes.value();
  }
  return bytes;
}

double Run::peak(const std::string& pool) const {
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    if (plan.pools[p].name == pool) return static_cast<double>(timeline.pools[p].peak);
  }
  FAIL("no pool " << pool);
  return 0;
}

// Sweeps over the effects in time; frees of an instant come before its allocations.
double Run::peak(const std::string& pool, const std::string& owner) const {
  std::map<std::pair<Instant, bool>, std::int64_t> changes;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    if (!is_run(TaskId{t})) continue;
    for (const Effect& e : plan.effects(TaskId{t})) {
      const bool takes = e.kind == Effect::Kind::allocate;
      if ((!takes && e.kind != Effect::Kind::free) || !holds(e.when, timeline)) continue;
      const Buffer& b = plan.buffers[e.target];
      if (plan.pools[index(b.pool)].name != pool || plan.owners[index(b.owner)] != owner) continue;
      changes[{takes ? timeline.start[t] : timeline.end[t], takes}] += takes ? b.bytes : -b.bytes;
    }
  }
  std::int64_t now = 0, most = 0;
  for (const auto& [at, change] : changes) most = std::max(most, now += change);
  return static_cast<double>(most);
}

namespace {

Policy policy_of(const std::string& text, const Machine& machine) {
  yaml::Document document(yaml::load_text(text, "policy"));
  Policy policy = read_policy(document.root(), machine);
  document.finish();
  return policy;
}

}  // namespace

Run run(const Question& q) {
  const Layout layout(q.parallel, q.machine.nodes(), q.machine.gpu_count(), q.is_folded);
  const bool is_node = layout.nodes_here() == 1 && !q.is_folded;
  Machine machine =
      is_node ? q.machine
              : q.machine.part(layout.nodes_here(), layout.gpus_per_node_here(),
                               q.is_folded ? static_cast<std::int32_t>(q.parallel.tensor) : 1);
  Policy policy = policy_of(q.policy, q.machine);
  const Setting setting{.graph = q.graph,
                        .machine = machine,
                        .zero = policy.zero,
                        .accumulation = q.accumulation,
                        .layout = layout};
  if (const auto profiling = policy.activations->profiling_iterations(); profiling > 0) {
    policy.activations->learn(simulate(build_plan(setting, policy, profiling), machine));
  }
  Plan plan = build_plan(setting, policy, q.iterations);
  std::vector<Demand> demands = price(plan, machine);
  Timeline timeline = simulate(plan, demands, machine.resources());
  for (const std::string& fault : faults(plan)) FAIL_CHECK(fault);
  for (const std::string& broken : broken_laws(plan, timeline, demands, machine.resources())) {
    FAIL_CHECK(broken);
  }
  return {std::move(machine), std::move(plan), std::move(demands), std::move(timeline)};
}

}  // namespace tidegate::toy
