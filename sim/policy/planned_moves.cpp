#include "sim/policy/planned_moves.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/offload/planners.hpp"
#include "sim/policy/activations.hpp"
#include "sim/policy/bindings.hpp"
#include "sim/policy/offload_trace.hpp"
#include "sim/policy/transport.hpp"

namespace tidegate {
namespace {

using Planner = MovePlan (*)(const TensorTrace&, const Rates&, Move::Where);

struct PlannerEntry {
  std::string_view name, title;
  bool uses_storage, uses_host;
  Planner plan;
};

constexpr PlannerEntry planners[] = {
    {"swap_all", "every tensor swapped, a layer ahead (vDNN)", true, true,
     [](const TensorTrace& t, const Rates& r, Move::Where where) {
       return plan_swap_all(t, r, {.where = where});
     }},
    {"flash_neuron", "tensors in forward order to storage until the rest fits (FlashNeuron)", true,
     false,
     [](const TensorTrace& t, const Rates& r, Move::Where) { return plan_flash_neuron(t, r); }},
    {"g10", "inactive intervals with booked bandwidth (G10)", true, true,
     [](const TensorTrace& t, const Rates& r, Move::Where) { return plan_g10(t, r); }},
    {"teraio", "inactive intervals, storage first, host as relief (TERAIO)", true, true,
     [](const TensorTrace& t, const Rates& r, Move::Where) {
       return plan_g10(t, r, teraio_options);
     }},
    {"capuchin", "swapped to host where hidden, else recomputed (Capuchin)", false, true,
     [](const TensorTrace& t, const Rates& r, Move::Where) { return plan_capuchin(t, r); }},
    {"lohan", "the swapped amount that makes the slowest resource fastest (LoHan)", true, true,
     [](const TensorTrace& t, const Rates& r, Move::Where) { return plan_lohan(t, r); }},
};

// A tensor of a micro-batch on a rank.
struct Held {
  BufferId buffer{};  // where it is now, or will be
  std::optional<TaskId> gone, there;
};

// The moves of a rank, by the time point at which something happens.
struct Schedule {
  std::vector<Move> moves;
  std::vector<std::vector<std::size_t>> leave, fetch, remake, need;  // by point: tensors
};

class PlannedMoves final : public ActivationPolicy {
 public:
  PlannedMoves(const PlannerEntry& planner, std::optional<TransportOptions> storage,
               std::int64_t threshold, const Machine& machine)
      : planner_(planner), rules_{.threshold = threshold} {
    where_ = "host memory";
    if (storage) {
      storage_.emplace(*storage);
      where_ = storage_->describe(machine) + (planner.uses_host ? " and host memory" : "");
    }
    TransportOptions host;
    host.to_host = true;
    host.store_workers = host.load_workers = 1;  // one copy engine each way
    if (planner.uses_host) host_.emplace(host);
  }

  std::vector<Visit> backward_order(const LayerGraph&, std::size_t first,
                                    std::size_t last) const override {
    return plain_backward(first, last);
  }
  bool stays_on_gpu() const override { return false; }
  bool knows_pipelines() const override { return false; }
  std::int32_t profiling_iterations() const override { return 2; }
  std::int32_t least_iterations() const override { return 3; }
  std::string describe() const override {
    return fmt::format("activations to {}: {}", where_, planner_.title);
  }

  void prepare(Step& step) override;
  void begin(Step&, std::int32_t iteration) override { iteration_ = iteration, held_.clear(); }
  void add(Step& step, const Visit& visit) override;
  void learn(const Timeline& timeline) override;

 private:
  class Hooks;
  const PlannerEntry& planner_;
  MoveRules rules_;
  std::string where_;
  std::optional<Transport> storage_, host_;
  TensorIndex index_;
  std::vector<ProfiledKernels> profile_;  // by rank
  std::vector<TensorTrace> traces_;       // by rank
  std::vector<Rates> rates_;              // by rank
  std::vector<Schedule> schedules_;       // by rank, once learnt
  std::int32_t iteration_ = 0;
  std::map<std::pair<std::int32_t, std::uint16_t>, std::vector<Held>> held_;  // micro-batch, rank

  bool is_planned() const { return !schedules_.empty(); }
  std::size_t point(const Visit& visit, std::size_t op) const {
    const std::size_t i = index_.op(visit.layer, op);
    return visit.pass == Pass::backward ? 2 * index_.operators - 1 - i : i;
  }
  std::vector<Held>& held(const Visit& visit, std::uint16_t rank) {
    auto& list = held_[{visit.micro_batch, rank}];
    list.resize(index_.tensors.size());
    return list;
  }
  Bytes bytes_of(std::size_t tensor) const {
    const TensorIndex::Tensor& t = index_.tensors[tensor];
    return index_.layers[t.layer].tensors[t.in_layer].saved.bytes;
  }
  std::int32_t identity_of(std::size_t tensor) const {
    const TensorIndex::Tensor& t = index_.tensors[tensor];
    return index_.layers[t.layer].tensors[t.in_layer].saved.identity;
  }
  static Visit of_layer(Visit visit, std::size_t layer) {
    visit.layer = layer;
    return visit;
  }
  Content content(const Step& step, const Visit& visit, std::uint16_t rank,
                  std::size_t tensor) const {
    if (step.bindings == nullptr) return {};
    return step.bindings->saved(of_layer(visit, index_.tensors[tensor].layer), rank,
                                identity_of(tensor), 0);
  }
  Transport& transport(Move::Where where) {
    return where == Move::Where::host ? *host_ : *storage_;
  }
  Rates rates(const Step& step, std::uint16_t rank) const;
  void reserve(Step& step);
  void allocate_saved(Step& step, const Visit& visit, std::uint16_t rank, std::size_t op,
                      Beside& beside);
  void free_used(const Visit& visit, std::uint16_t rank, std::size_t op, Beside& beside);
  void bring_back(Step& step, const Visit& visit, std::uint16_t rank, std::size_t point,
                  Beside& beside);
  void make_again(Step& step, const Visit& visit, std::uint16_t rank, std::size_t point,
                  Beside& beside);
  void bind_again(Step& step, const Visit& visit, std::uint16_t rank,
                  std::span<const std::size_t> remake, TaskId task) const;
  static void refuse_again(const Step& step, std::size_t layer, const Bindings::Again& again);
  void drop(const Visit& visit, std::uint16_t rank, std::size_t point, Beside& beside);
  void send(Step& step, const Visit& visit, std::uint16_t rank, std::size_t point, TaskId kernels);
  void note(const Visit& visit, std::uint16_t rank, std::size_t op, TaskId kernels);
};

class PlannedMoves::Hooks final : public SegmentHooks {
 public:
  Hooks(PlannedMoves& policy, Step& step, const Visit& visit)
      : policy_(policy), step_(step), visit_(visit) {}
  bool is_by_operator() const override { return true; }

  void before(std::uint16_t rank, const Segment& s, Beside& beside) override {
    const std::size_t point = policy_.point(visit_, s.first);
    if (visit_.pass == Pass::forward) {
      policy_.allocate_saved(step_, visit_, rank, s.first, beside);
    } else if (policy_.is_planned()) {
      policy_.bring_back(step_, visit_, rank, point, beside);
      policy_.make_again(step_, visit_, rank, point, beside);
    }
    if (policy_.is_planned()) policy_.drop(visit_, rank, point, beside);
    if (visit_.pass == Pass::backward) policy_.free_used(visit_, rank, s.first, beside);
  }
  void behind(std::uint16_t rank, const Segment& s, TaskId kernels) override {
    policy_.note(visit_, rank, s.first, kernels);
    if (policy_.is_planned()) {
      policy_.send(step_, visit_, rank, policy_.point(visit_, s.first), kernels);
    }
  }

 private:
  PlannedMoves& policy_;
  Step& step_;
  Visit visit_;
};

void PlannedMoves::prepare(Step& step) {
  index_ = TensorIndex(step.graph(), step.layout().parallel().tensor > 1);
  held_.clear();
  if (!is_planned()) {
    profile_.assign(step.ranks(),
                    {std::vector<TaskId>(index_.operators), std::vector<TaskId>(index_.operators)});
    traces_.clear();
    rates_.clear();
  }
  reserve(step);
  for (std::uint16_t r = 0; r < step.ranks() && !is_planned(); ++r) {
    traces_.push_back(trace_of(step, r, index_, rules_));
    rates_.push_back(rates(step, r));
  }
}

// What the moves of one micro-batch leave in files and in pinned memory.
void PlannedMoves::reserve(Step& step) {
  std::vector<Bytes> stored(step.ranks()), hosted(step.ranks());
  Bytes largest;
  for (std::uint16_t r = 0; r < step.ranks() && is_planned(); ++r) {
    for (const Move& m : schedules_[r].moves) {
      if (m.what != Move::What::offload) continue;
      (m.where == Move::Where::host ? hosted : stored)[r] += bytes_of(m.tensor);
      if (m.where == Move::Where::storage) largest = std::max(largest, bytes_of(m.tensor));
    }
  }
  if (storage_) storage_->prepare(step, stored, largest);
  if (host_) host_->prepare(step, hosted, Bytes(0), "host.");
}

void PlannedMoves::add(Step& step, const Visit& visit) {
  Hooks hooks(*this, step, visit);
  step.on_layer(visit.pass == Pass::forward ? "forward" : "backward", visit, hooks);
}

void PlannedMoves::note(const Visit& visit, std::uint16_t rank, std::size_t op, TaskId kernels) {
  if (is_planned() || iteration_ + 1 != profiling_iterations() || visit.micro_batch > 0) return;
  ProfiledKernels& p = profile_[rank];
  (visit.pass == Pass::forward ? p.forward : p.backward)[index_.op(visit.layer, op)] = kernels;
}

void PlannedMoves::allocate_saved(Step& step, const Visit& visit, std::uint16_t rank,
                                  std::size_t op, Beside& beside) {
  const SavedTensors& saved = index_.layers[visit.layer];
  for (const std::size_t i : saved.saved_at[op]) {
    const std::size_t t = index_.tensor(visit.layer, i);
    const bool moves = is_planned() && schedules_[rank].moves[t].what != Move::What::keep;
    const OwnerId owner = step.plan().owner(moves ? "activations to move" : "kept activations");
    Held& held = this->held(visit, rank)[t];
    held = {step.plan().buffer(step.gpu_pool(rank), owner, bytes_of(t)), {}, {}};
    beside.effects.push_back(allocate(held.buffer));
    if (step.bindings != nullptr)
      step.bindings->put(visit, rank, saved.tensors[i].saved.identity, 0, {{held.buffer, {}}});
  }
}

// A tensor that is to be made again is dropped with the kernels of its point.
void PlannedMoves::drop(const Visit& visit, std::uint16_t rank, std::size_t point, Beside& beside) {
  for (const std::size_t t : schedules_[rank].leave[point]) {
    if (schedules_[rank].moves[t].what != Move::What::recompute) continue;
    beside.effects.push_back(free(held(visit, rank)[t].buffer));
  }
}

void PlannedMoves::send(Step& step, const Visit& visit, std::uint16_t rank, std::size_t point,
                        TaskId kernels) {
  for (const std::size_t t : schedules_[rank].leave[point]) {
    const Move& move = schedules_[rank].moves[t];
    if (move.what != Move::What::offload) continue;
    Held& held = this->held(visit, rank)[t];
    held.gone = transport(move.where)
                    .store(step, {.name = "store",
                                  .rank = rank,
                                  .item = static_cast<std::int32_t>(index_.tensors[t].layer),
                                  .bytes = bytes_of(t),
                                  .when = {},
                                  .after = {kernels},
                                  .at_start = {},
                                  .at_end = {free(held.buffer)},
                                  .content = content(step, visit, rank, t),
                                  .buffer = held.buffer})
                    .last;
  }
}

// Fetches begin when their point does: behind the kernels before it.
void PlannedMoves::bring_back(Step& step, const Visit& visit, std::uint16_t rank, std::size_t point,
                              Beside& beside) {
  const OwnerId owner = step.plan().owner("fetched activations");
  for (const std::size_t t : schedules_[rank].fetch[point]) {
    Held& held = this->held(visit, rank)[t];
    held.buffer = step.plan().buffer(step.gpu_pool(rank), owner, bytes_of(t));
    held.there = transport(schedules_[rank].moves[t].where)
                     .load(step, {.name = "load",
                                  .rank = rank,
                                  .item = static_cast<std::int32_t>(index_.tensors[t].layer),
                                  .bytes = bytes_of(t),
                                  .when = {},
                                  .after = {*held.gone, *step.rank(rank).last_kernel},
                                  .at_start = {allocate(held.buffer)},
                                  .at_end = {},
                                  .content = content(step, visit, rank, t),
                                  .buffer = held.buffer})
                     .last;
    if (step.bindings != nullptr)
      step.bindings->put(of_layer(visit, index_.tensors[t].layer), rank, identity_of(t), 0,
                         {{held.buffer, {}}});
  }
  for (const std::size_t t : schedules_[rank].need[point]) {
    beside.kernel_after.push_back(*this->held(visit, rank)[t].there);
  }
}

void PlannedMoves::make_again(Step& step, const Visit& visit, std::uint16_t rank, std::size_t point,
                              Beside& beside) {
  const auto& remake = schedules_[rank].remake[point];
  if (remake.empty()) return;
  const OwnerId owner = step.plan().owner("recomputed activations");
  std::vector<std::pair<std::size_t, std::size_t>> operators;
  std::vector<Effect> effects;
  for (const std::size_t t : remake) {
    const TensorIndex::Tensor& tensor = index_.tensors[t];
    for (const std::size_t op : tensor.remade_by) operators.emplace_back(tensor.layer, op);
    Held& held = this->held(visit, rank)[t];
    held.buffer = step.plan().buffer(step.gpu_pool(rank), owner, bytes_of(t));
    effects.push_back(allocate(held.buffer));
    if (step.bindings != nullptr)
      step.bindings->put(of_layer(visit, tensor.layer), rank, identity_of(t), 0,
                         {{held.buffer, {}}});
  }
  std::ranges::sort(operators);
  operators.erase(std::ranges::unique(operators).begin(), operators.end());
  std::vector<Kernel> kernels;
  for (const auto& [layer, op] : operators) {
    const auto& forward = step.graph().layers[layer].operators[op].forward;
    kernels.insert(kernels.end(), forward.begin(), forward.end());
  }
  const TaskId task = step.on_gpu("recompute", rank, static_cast<std::int32_t>(visit.layer),
                                  std::move(kernels), beside.kernel_after, effects);
  if (step.bindings != nullptr) bind_again(step, visit, rank, remake, task);
}

// Operators that make tensors of a run follow each other; several runs of a layer, or of layers,
// may fall on one point.
void PlannedMoves::bind_again(Step& step, const Visit& visit, std::uint16_t rank,
                              std::span<const std::size_t> remake, TaskId task) const {
  std::vector<std::size_t> ordered(remake.begin(), remake.end());
  std::ranges::sort(ordered, {}, [&](std::size_t t) {
    return std::pair(index_.tensors[t].layer, index_.tensors[t].remade_by.front());
  });
  std::size_t layer = 0;
  Bindings::Again again;
  const auto bind = [&] {
    if (again.made.empty()) return;
    refuse_again(step, layer, again);
    step.bindings->computed_again(task, of_layer(visit, layer), again, rank);
  };
  for (const std::size_t t : ordered) {
    const TensorIndex::Tensor& tensor = index_.tensors[t];
    const std::size_t first = tensor.remade_by.front(), end = tensor.remade_by.back() + 1;
    const bool continues = !again.made.empty() && tensor.layer == layer && first <= again.end;
    if (!continues) bind(), again = {first, end, {}, {}}, layer = tensor.layer;
    again.end = std::max(again.end, end);
    again.made.push_back(identity_of(t));
    for (const std::size_t k : tensor.from)
      again.with.push_back(identity_of(index_.tensor(tensor.layer, k)));
  }
  bind();
}

// Under ZeRO-3 a run may want parameters of sub-modules whose backward is yet to come; the plan
// does not gather them. Norms of q and k do not save v, which comes from the operator before them.
void PlannedMoves::refuse_again(const Step& step, std::size_t layer, const Bindings::Again& again) {
  const ZeroOptions& zero = step.setting().zero;
  const auto& operators = step.graph().layers[layer].operators;
  for (std::size_t op = again.first; op < again.end && zero.stage == 3; ++op) {
    for (const Parameter& p : operators[op].parameters) {
      if (p.elements >= zero.persistence_threshold)
        Bindings::refuse(
            "single operators that run again under ZeRO-3, whose parameters nothing "
            "gathers");
    }
  }
  if (operators[again.first].name == "qk_norm")
    Bindings::refuse("norms of q and k that run again by themselves");
}

void PlannedMoves::free_used(const Visit& visit, std::uint16_t rank, std::size_t op,
                             Beside& beside) {
  const SavedTensors& saved = index_.layers[visit.layer];
  for (const std::size_t i : saved.needed_at[op]) {
    if (saved.tensors[i].first != op) continue;  // needed once more
    const std::size_t t = index_.tensor(visit.layer, i);
    beside.effects.push_back(free(held(visit, rank)[t].buffer));
  }
}

// The link of a GPU and its part of a path that several ranks use.
Rates PlannedMoves::rates(const Step& step, std::uint16_t rank) const {
  const Machine& machine = step.setting().machine;
  const Gpu& gpu = machine.gpu(rank);
  const auto ranks = static_cast<double>(machine.gpus_per_node());
  Rates rates{.out_host = gpu.d2h,
              .in_host = gpu.h2d,
              .out_storage = gpu.d2h,
              .in_storage = gpu.h2d,
              .latency_host = Seconds(0),
              .latency_storage = Seconds(0),
              .gpu_capacity = gpu.memory - gpu.context,
              .host_capacity = (machine.host().memory - machine.host().base_use) / ranks};
  if (!storage_) return rates;
  const auto& paths = storage_->options().paths;
  const StoragePath& path = machine.paths()[step.path_of(rank, paths[rank % paths.size()])];
  const double sharing = std::max(1.0, ranks / static_cast<double>(paths.size()));
  rates.out_storage = path.write / sharing;
  rates.in_storage = path.read / sharing;
  rates.latency_storage = path.latency;
  return rates;
}

void PlannedMoves::learn(const Timeline& timeline) {
  for (std::size_t r = 0; r < traces_.size(); ++r) {
    TensorTrace& trace = traces_[r];
    set_times(trace, index_, profile_[r], timeline);
    const bool to_storage = storage_ && !storage_->options().to_host;
    const MovePlan plan =
        planner_.plan(trace, rates_[r], to_storage ? Move::Where::storage : Move::Where::host);
    Schedule s{.moves = plan.moves, .leave = {}, .fetch = {}, .remake = {}, .need = {}};
    for (auto* list : {&s.leave, &s.fetch, &s.remake, &s.need}) list->resize(trace.points());
    for (const Move& m : s.moves) {
      if (m.what == Move::What::keep) continue;
      s.leave[m.out_after].push_back(m.tensor);
      if (m.what == Move::What::recompute) {
        s.remake[m.in_at].push_back(m.tensor);
      } else {
        s.fetch[m.in_at].push_back(m.tensor);
        s.need[m.in_before].push_back(m.tensor);
      }
    }
    // Of equal points, what is needed first is fetched first.
    for (auto& list : s.fetch) {
      std::ranges::stable_sort(list, {}, [&](std::size_t t) { return s.moves[t].in_before; });
    }
    schedules_.push_back(std::move(s));
  }
}

}  // namespace

std::span<const PlannedPolicy> planned_policies() {
  static const std::vector<PlannedPolicy> all = [] {
    std::vector<PlannedPolicy> list;
    for (const PlannerEntry& p : planners) list.push_back({p.name, p.title});
    return list;
  }();
  return all;
}

std::unique_ptr<ActivationPolicy> make_planned_moves(std::string_view name, yaml::Map& options,
                                                     const Machine& machine) {
  const auto* entry = std::ranges::find(planners, name, &PlannerEntry::name);
  ensure(entry != std::end(planners), "a planner of the table");
  std::optional<TransportOptions> storage;
  if (entry->uses_storage) {
    storage = read_transport(options, machine);
    const bool may_be_host = entry->name == "swap_all";
    if (storage->to_host && !may_be_host) {
      options.at("to").problem(fmt::format("{} needs storage paths", name));
    }
    if (storage->to_host) storage.reset();
  }
  const std::int64_t threshold = options.count_or("threshold", MoveRules{}.threshold);
  return std::make_unique<PlannedMoves>(*entry, storage, threshold, machine);
}

}  // namespace tidegate
