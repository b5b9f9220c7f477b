#include "sim/search/bound.hpp"

#include <algorithm>

#include "sim/policy/build_plan.hpp"
#include "sim/run/predict.hpp"

namespace tidegate {
namespace {

Seconds alone(const Machine& machine, std::vector<Kernel> kernels) {
  return machine.demand(Compute{0, std::move(kernels)}).alone;
}

// Seconds of each resource at full speed.
class Load {
 public:
  explicit Load(std::span<const Resource> resources) : resources_(resources) {
    seconds_.resize(resources.size());
  }

  void add(const Demand& demand) {
    for (const Share& share : demand.used()) {
      const double cost = std::min(1.0, resources_[index(share.resource)].mixed_cost[share.side]);
      seconds_[index(share.resource)] += cost * share.fraction * demand.alone;
    }
  }
  void add(const Load& other) {
    for (std::size_t r = 0; r < seconds_.size(); ++r) seconds_[r] += other.seconds_[r];
  }
  std::pair<Seconds, std::string> largest() const {
    if (seconds_.empty()) return {};
    const auto most = std::ranges::max_element(seconds_);
    return {*most, resources_[static_cast<std::size_t>(most - seconds_.begin())].name};
  }

 private:
  std::span<const Resource> resources_;
  std::vector<Seconds> seconds_;
};

// One micro-batch on a GPU, recomputation included.
Seconds micro_batch_time(const LayerGraph& graph, const KernelTimes& times,
                         const ActivationPolicy& activations) {
  Seconds sum;
  for (const Seconds t : times.forward) sum += t;
  for (const Visit& visit : activations.backward_order(graph, 0, graph.layers.size())) {
    const auto& list = visit.pass == Pass::backward         ? times.backward
                       : visit.pass == Pass::recompute_core ? times.core
                                                            : times.forward;
    sum += list[visit.layer];
  }
  return sum;
}

void raise(Seconds& time, std::string& by, const std::pair<Seconds, std::string>& other) {
  if (other.first <= time) return;
  time = other.first, by = other.second;
}

void bound_time(Bound& bound, const Machine& machine, const std::vector<LeastWork>& least,
                Seconds kernels) {
  Load passes(machine.resources()), update(machine.resources()), all(machine.resources());
  Seconds in_turn;
  bool follows = true;
  for (const LeastWork& rank : least) {
    Seconds mine;
    for (const Work& work : rank.passes) passes.add(machine.demand(work));
    for (const Work& work : rank.update) update.add(machine.demand(work));
    for (const Work& work : rank.anytime) all.add(machine.demand(work));
    for (const Work& work : rank.in_turn) {
      const Demand demand = machine.demand(work);
      update.add(demand);
      mine += demand.latency + demand.alone;
    }
    in_turn = std::max(in_turn, mine);
    follows &= rank.follows_backward;
  }
  all.add(passes), all.add(update);
  std::string by_passes = "kernels", by_update = "thread";
  bound.kernels = bound.passes = kernels, bound.update = in_turn;
  raise(bound.passes, by_passes, passes.largest());
  raise(bound.update, by_update, update.largest());
  const bool is_passes = bound.passes >= bound.update;
  bound.limited_by = is_passes ? by_passes : by_update;
  bound.time = follows ? bound.passes + bound.update : std::max(bound.passes, bound.update);
  raise(bound.time, bound.limited_by, all.largest());
}

// The most that is held at a time before the first iteration, and from then on.
struct Held {
  std::vector<Bytes> startup, standing;
};

Held held_of(const Plan& plan) {
  Held held{.startup = std::vector<Bytes>(plan.pools.size()), .standing = {}};
  std::vector<Bytes> now(plan.pools.size());
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    // The last task gives everything back.
    if (t + 1 == plan.size()) held.standing = now;
    for (const auto kind : {Effect::Kind::allocate, Effect::Kind::free}) {
      for (const Effect& e : plan.effects(TaskId{t})) {
        if (e.kind != kind) continue;
        const Buffer& buffer = plan.buffers[e.target];
        const Bytes bytes(static_cast<double>(buffer.bytes));
        Bytes& pool = now[index(buffer.pool)];
        pool = kind == Effect::Kind::allocate ? pool + bytes : pool - bytes;
        Bytes& most = held.startup[index(buffer.pool)];
        most = std::max(most, pool);
      }
    }
  }
  return held;
}

// What the passes of a micro-batch leave on a GPU beside what stands there.
Bytes left_on_gpu(const Scenario& scenario, const LayerGraph& graph, const Layout& layout) {
  if (layout.stages() > 1) return Bytes(0);
  const ZeroOptions& zero = scenario.policy.zero;
  Bytes gradients;
  if (zero.stage < 2 && !zero.contiguous_gradients) {
    double elements = 0;
    for (const Layer& layer : graph.layers) elements += static_cast<double>(layer.parameters());
    gradients = Bytes(elements * bytes_per_element(graph.dtype));
  }
  return std::max(gradients, scenario.policy.activations->least_kept(graph));
}

}  // namespace

Need need_of(const Pool& pool, Bytes bytes, const Machine& machine) {
  const bool is_gpu = pool.place.tier == Tier::gpu;
  const double holders = is_gpu ? 1 : machine.fold();
  return {.pool = pool.name,
          .bytes = bytes * holders,
          .capacity = pool.capacity * holders,
          .is_gpu = is_gpu,
          .is_host = pool.place.tier == Tier::host};
}

KernelTimes kernel_times(const LayerGraph& graph, const Machine& machine) {
  KernelTimes times;
  for (const Layer& layer : graph.layers) {
    times.forward.push_back(alone(machine, layer.forward_kernels()));
    times.backward.push_back(alone(machine, layer.backward_kernels()));
    times.core.push_back(alone(machine, layer.core_kernels()));
  }
  return times;
}

bool Bound::may_fit() const { return std::ranges::all_of(needs, &Need::fits); }

Bound bound_of(Scenario& scenario, const LayerGraph& graph, const KernelTimes& times) {
  const Layout layout = layout_of(scenario);
  const Machine machine = machine_here(scenario, scenario.machine);
  const Setting setting = setting_of(scenario, graph, machine, layout);
  const Outline o = outline(setting, scenario.policy);
  const auto parts =
      static_cast<double>(scenario.workload.accumulation) / static_cast<double>(layout.stages());
  Bound bound;
  bound_time(bound, machine, o.least,
             parts * micro_batch_time(graph, times, *scenario.policy.activations));
  const Held held = held_of(o.standing);
  const Bytes left = left_on_gpu(scenario, graph, layout);
  for (std::size_t p = 0; p < o.standing.pools.size(); ++p) {
    const Pool& pool = o.standing.pools[p];
    const bool is_gpu = pool.place.tier == Tier::gpu;
    const Bytes bytes = held.standing[p] + (is_gpu ? left : Bytes(0));
    bound.needs.push_back(need_of(pool, std::max(bytes, held.startup[p]), machine));
  }
  return bound;
}

}  // namespace tidegate
