#include "sim/policy/ssdtrain.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "sim/policy/activations.hpp"
#include "sim/policy/adaptive_keep.hpp"
#include "sim/policy/bindings.hpp"
#include "sim/policy/keep_profile.hpp"
#include "sim/policy/module_order.hpp"
#include "sim/policy/saved_tensors.hpp"

namespace tidegate {
namespace {

// A tensor of a micro-batch on a rank, from the operator that saves it to the last that needs it.
struct Saved {
  BufferId buffer{};  // as forward allocated it
  bool is_stored = false;
  std::optional<TaskId> stored;     // end of its store
  std::optional<ChoiceId> stays;    // forwarded: backward came before the store had ended
  std::optional<ChoiceId> dropped;  // its queued store is cancelled
  std::optional<ChoiceId> drains;   // forwarded, and its store outlasts backward's use
  bool is_requested = false;
  std::optional<TaskId> loaded;
  BufferId loaded_buffer{};
};

class SsdTrain final : public ActivationPolicy {
 public:
  SsdTrain(SsdTrainOptions options, const Machine& machine)
      : options_(std::move(options)),
        transport_(options_.transport),
        where_(transport_.describe(machine)) {}

  std::vector<Visit> backward_order(const LayerGraph&, std::size_t first,
                                    std::size_t last) const override {
    return plain_backward(first, last);
  }
  bool stays_on_gpu() const override { return false; }
  std::int32_t profiling_iterations() const override {
    return options_.is_adaptive ? options_.profile_iteration + 1 : 0;
  }
  std::int32_t least_iterations() const override {
    return options_.is_adaptive ? options_.profile_iteration + 3 : 3;
  }

  void prepare(Step& step) override;
  void begin(Step& step, std::int32_t iteration) override;
  void upcoming(const Action& now, const Action* next) override;
  void add(Step& step, const Visit& visit) override;
  void learn(const Timeline& timeline) override;
  std::string describe() const override;

 private:
  class Hooks;

  SsdTrainOptions options_;
  Transport transport_;
  std::string where_;
  std::vector<SavedTensors> layers_;
  ModuleOrder modules_;
  std::vector<Position> last_modules_;                // by piece: the last that saves for storing
  std::vector<std::optional<Position>> boundary_;     // by rank: from here on tensors are kept
  std::vector<KeepProfile> profile_;                  // by rank
  std::vector<std::vector<TaskId>> profiled_stores_;  // by rank: of the profiling iteration
  bool is_profiled_ = false;
  std::int32_t iteration_ = 0;
  // By micro-batch, layer and rank, from the layer's forward to its backward; as SavedTensors.
  std::unordered_map<std::uint64_t, std::vector<Saved>> saved_;
  OwnerId stored_owner_{}, kept_owner_{}, loaded_owner_{};
  std::optional<Action> next_backward_;  // of another micro-batch, when backward ends
  bool backward_follows_ = false;        // of the micro-batch in forward

  std::uint64_t key(const Step& step, std::size_t layer, std::int32_t micro_batch,
                    std::uint16_t rank) const {
    const auto batch = static_cast<std::uint64_t>(micro_batch);
    return (batch * layers_.size() + layer) * step.ranks() + rank;
  }
  std::vector<Saved>& saved(const Step& step, const Visit& visit, std::uint16_t rank) {
    return saved_[key(step, visit.layer, visit.micro_batch, rank)];
  }
  // Where every saving is a tensor of its own, its operator tells it apart.
  std::int32_t copy_of(const SavedTensors::Tensor& t) const {
    return options_.deduplicates ? 0 : static_cast<std::int32_t>(t.first) + 1;
  }
  static Visit of_layer(Visit visit, std::int32_t layer) {
    visit.layer = static_cast<std::size_t>(layer);
    return visit;
  }
  Content content(const Step& step, const Visit& visit, std::uint16_t rank, std::size_t i) const {
    if (step.bindings == nullptr) return {};
    const SavedTensors::Tensor& t = layers_[visit.layer].tensors[i];
    return step.bindings->saved(visit, rank, t.saved.identity, copy_of(t));
  }
  // Backward finds a stored tensor where it stayed, or where it was loaded.
  void bind(Step& step, const Visit& visit, std::uint16_t rank, std::size_t i,
            const Saved& saved) const {
    const SavedTensors::Tensor& t = layers_[visit.layer].tensors[i];
    std::vector<Bindings::At> places = {{saved.loaded_buffer, {}}};
    if (saved.stays)
      places = {{saved.buffer, When::yes(*saved.stays)},
                {saved.loaded_buffer, When::no(*saved.stays)}};
    step.bindings->put(visit, rank, t.saved.identity, copy_of(t), std::move(places));
  }
  void reserve(Step& step);
  void find_last_modules();
  bool is_stored(const Visit& visit, std::uint16_t rank, const SavedTensors::Tensor& t) const;
  bool is_profiling(const Visit& visit) const {
    return !is_profiled_ && iteration_ == options_.profile_iteration && visit.micro_batch == 0;
  }
  void save(Step& step, const Visit& visit, std::uint16_t rank, std::size_t op, Beside& beside);
  void store(Step& step, const Visit& visit, std::uint16_t rank, std::size_t op, TaskId kernels);
  void need(Step& step, const Visit& visit, std::uint16_t rank, std::size_t op, Beside& beside);
  void release(Step& step, const Visit& visit, std::uint16_t rank, std::size_t op, TaskId kernels);
  void request(Step& step, const Visit& visit, std::uint16_t rank, std::span<const Position> ahead,
               const Position* own, bool own_on_thread);
  void prefetch_last_of(Step& step, const Action& action);
  void wait_for_stores(Step& step, const Visit& visit);
};

// What a visit adds around its operators.
class SsdTrain::Hooks final : public SegmentHooks {
 public:
  Hooks(SsdTrain& policy, Step& step, const Visit& visit)
      : policy_(policy), step_(step), visit_(visit) {}
  bool is_by_operator() const override { return true; }
  void before(std::uint16_t rank, const Segment& s, Beside& beside) override {
    if (is_forward()) {
      policy_.save(step_, visit_, rank, s.first, beside);
    } else {
      policy_.need(step_, visit_, rank, s.first, beside);
    }
  }
  void behind(std::uint16_t rank, const Segment& s, TaskId kernels) override {
    if (is_forward()) {
      policy_.store(step_, visit_, rank, s.first, kernels);
    } else {
      policy_.release(step_, visit_, rank, s.first, kernels);
    }
  }

 private:
  SsdTrain& policy_;
  Step& step_;
  Visit visit_;

  bool is_forward() const { return visit_.pass == Pass::forward; }
};

void SsdTrain::prepare(Step& step) {
  step.model_launches(options_.launch_queue);
  stored_owner_ = step.plan().owner("activations to store");
  kept_owner_ = step.plan().owner("kept activations");
  loaded_owner_ = step.plan().owner("loaded activations");
  layers_.clear();
  saved_.clear();
  for (const Layer& layer : step.graph().layers) {
    layers_.emplace_back(layer, options_.scope, options_.deduplicates);
  }
  modules_ = ModuleOrder(step.graph(), step.pieces());
  find_last_modules();
  if (!is_profiled_) profile_.assign(step.ranks(), {});
  boundary_.resize(step.ranks());
  profiled_stores_.assign(step.ranks(), {});
  reserve(step);
}

// Files and pinned memory for all that may wait at the same time: of every micro-batch that a stage
// has in flight, all that may be stored.
void SsdTrain::reserve(Step& step) {
  const auto stages = static_cast<std::int64_t>(step.layout().stages());
  const auto& pieces = step.pieces();
  Bytes largest;
  std::vector<Bytes> waiting(step.ranks());
  for (std::uint16_t r = 0; r < step.ranks(); ++r) {
    const std::int64_t stage = step.layout().stage_of(r);
    const std::int64_t in_flight = std::min(stages - stage, step.setting().accumulation);
    for (std::size_t i = static_cast<std::size_t>(stage); i < pieces.size();
         i += static_cast<std::size_t>(stages)) {
      for (std::size_t l = pieces[i].first; l < pieces[i].last; ++l) {
        for (const SavedTensors::Tensor& t : layers_[l].tensors) {
          if (!t.may_be_stored) continue;
          waiting[r] += static_cast<double>(in_flight) * t.saved.bytes;
          largest = std::max(largest, t.saved.bytes);
        }
      }
    }
  }
  transport_.prepare(step, waiting, largest);
}

void SsdTrain::find_last_modules() {
  last_modules_.clear();
  for (std::size_t p = 0; p < modules_.pieces(); ++p) {
    Position last = modules_.first_of(p);
    for (std::size_t l = modules_.piece(p).first; l < modules_.piece(p).last; ++l) {
      for (const SavedTensors::Tensor& t : layers_[l].tensors) {
        if (t.may_be_stored) last = std::max(last, Position{l, t.first});
      }
    }
    last_modules_.push_back(last);
  }
}

void SsdTrain::begin(Step&, std::int32_t iteration) {
  iteration_ = iteration;
  saved_.clear();
}

void SsdTrain::upcoming(const Action& now, const Action* next) {
  const bool is_backward_next = next != nullptr && !next->is_forward;
  backward_follows_ = is_backward_next && next->micro_batch == now.micro_batch;
  next_backward_.reset();
  if (!now.is_forward && is_backward_next) next_backward_ = *next;
}

void SsdTrain::add(Step& step, const Visit& visit) {
  Hooks hooks(*this, step, visit);
  const bool is_forward = visit.pass == Pass::forward;
  step.on_layer(is_forward ? "forward" : "backward", visit, hooks);
  if (is_forward) return;
  for (const std::uint16_t r : step.crew(visit.stage)) {
    saved_.erase(key(step, visit.layer, visit.micro_batch, r));
  }
  if (!modules_.is_first_layer(visit.layer)) return;
  if (next_backward_ && options_.prefetches_across) prefetch_last_of(step, *next_backward_);
  if (options_.is_adaptive && iteration_ == options_.profile_iteration)
    wait_for_stores(step, visit);
}

// The profiling iteration ends when its stores have: what comes behind begins with empty queues
// (`wait_backward` of FlashTrain's TensorCache).
void SsdTrain::wait_for_stores(Step& step, const Visit& visit) {
  for (const std::uint16_t r : step.crew(visit.stage)) {
    step.on_thread("wait for stores", r, -1, Delay{}, profiled_stores_[r]);
  }
}

bool SsdTrain::is_stored(const Visit& visit, std::uint16_t rank,
                         const SavedTensors::Tensor& t) const {
  if (iteration_ == 0 && options_.records_first) return false;
  if (!t.may_be_stored) return false;
  const Position at{visit.layer, t.first};
  if (options_.keeps_last_module && backward_follows_ &&
      at == last_modules_[modules_.piece_of(visit.layer)])
    return false;
  const bool is_adapted = options_.is_adaptive && iteration_ > options_.profile_iteration;
  return !is_adapted || !boundary_[rank] || at < *boundary_[rank];
}

void SsdTrain::save(Step& step, const Visit& visit, std::uint16_t rank, std::size_t op,
                    Beside& beside) {
  auto& all = saved(step, visit, rank);
  all.resize(layers_[visit.layer].tensors.size());
  for (const std::size_t i : layers_[visit.layer].saved_at[op]) {
    const SavedTensors::Tensor& t = layers_[visit.layer].tensors[i];
    Saved& saved = all[i];
    saved.is_stored = is_stored(visit, rank, t);
    // A storage that is saved again is there already.
    saved.buffer =
        step.plan().buffer(step.gpu_pool(rank), saved.is_stored ? stored_owner_ : kept_owner_,
                           t.is_repeated ? Bytes(0) : t.saved.bytes);
    beside.effects.push_back(allocate(saved.buffer));
    if (step.bindings != nullptr)
      step.bindings->put(visit, rank, t.saved.identity, copy_of(t), {{saved.buffer, {}}});
  }
}

void SsdTrain::store(Step& step, const Visit& visit, std::uint16_t rank, std::size_t op,
                     TaskId kernels) {
  if (is_profiling(visit)) {
    profile_[rank].computed(step.graph(), {visit.layer, op}, kernels);
  }
  auto& all = saved(step, visit, rank);
  for (const std::size_t i : layers_[visit.layer].saved_at[op]) {
    Saved& saved = all[i];
    if (!saved.is_stored) continue;
    PlanBuilder& plan = step.plan();
    if (options_.forwards) saved.stays = plan.choice(Choice::Rule::unfinished);
    if (options_.forwards && options_.cancels) saved.dropped = plan.choice(Choice::Rule::unstarted);
    const Bytes bytes = layers_[visit.layer].tensors[i].saved.bytes;
    Transport::Job job{.name = "store",
                       .rank = rank,
                       .item = static_cast<std::int32_t>(visit.layer),
                       .bytes = bytes,
                       .when = saved.dropped ? When::no(*saved.dropped) : When{},
                       .after = {kernels},
                       .at_start = {},
                       .at_end = {},
                       .content = content(step, visit, rank, i),
                       .buffer = saved.buffer};
    job.at_end.push_back(saved.stays ? free(saved.buffer, When::no(*saved.stays))
                                     : free(saved.buffer));
    if (saved.stays && !saved.dropped) {
      saved.drains = plan.choice(Choice::Rule::unfinished);
      job.at_end.push_back(free(saved.buffer, When::yes(*saved.drains)));
    }
    const Transport::Moved moved = transport_.store(step, job);
    saved.stored = moved.last;
    if (iteration_ == options_.profile_iteration) profiled_stores_[rank].push_back(moved.last);
    if (saved.stays) plan.watch(*saved.stays, moved.last);
    if (saved.dropped) plan.watch(*saved.dropped, moved.first);
    if (saved.drains) plan.watch(*saved.drains, moved.last);
    if (is_profiling(visit)) profile_[rank].stored(moved.first, moved.last, bytes);
  }
}

void SsdTrain::need(Step& step, const Visit& visit, std::uint16_t rank, std::size_t op,
                    Beside& beside) {
  const Position here{visit.layer, op};
  const bool is_head = modules_.is_chunk_head(here, options_.chunk);
  std::vector<Position> ahead;
  if (options_.prefetches && is_head) ahead = modules_.rest_of_chunk(here, options_.chunk);
  request(step, visit, rank, ahead, &here, is_head || !options_.prefetches);
  const auto& all = saved(step, visit, rank);
  for (const std::size_t i : layers_[visit.layer].needed_at[op]) {
    const Saved& saved = all.at(i);
    if (saved.loaded) beside.launch_after.push_back(*saved.loaded);
    if (step.bindings != nullptr && saved.is_stored) bind(step, visit, rank, i, saved);
    if (layers_[visit.layer].tensors[i].first != op) continue;  // needed once more
    if (!saved.is_stored) {
      beside.effects.push_back(free(saved.buffer));
    } else if (saved.stays) {
      if (saved.dropped) beside.effects.push_back(free(saved.buffer, When::yes(*saved.stays)));
      beside.effects.push_back(free(saved.loaded_buffer, When::no(*saved.stays)));
    } else {
      beside.effects.push_back(free(saved.loaded_buffer));
    }
  }
}

// The queue of stores holds a tensor too: one that backward has used before its store has ended
// goes with the store. (Of a cancelled store's tensor backward is the last user; of one whose store
// could not be cancelled any more, the bytes that are still being written then count as free.)
void SsdTrain::release(Step& step, const Visit& visit, std::uint16_t rank, std::size_t op,
                       TaskId kernels) {
  const auto& all = saved(step, visit, rank);
  for (const std::size_t i : layers_[visit.layer].needed_at[op]) {
    const Saved& saved = all.at(i);
    if (!saved.drains || layers_[visit.layer].tensors[i].first != op) continue;
    const Effect effects[] = {decide(*saved.drains), free(saved.buffer, When::no(*saved.drains))};
    step.plan().join({.name = "release",
                      .lane = step.rank(rank).gpu,
                      .rank = rank,
                      .item = static_cast<std::int32_t>(visit.layer),
                      .when = When::yes(*saved.stays)},
                     {&kernels, 1}, effects);
  }
}

// Brings the tensors of modules back that nobody has asked for yet: those of `ahead` by the pool,
// those of `own` by the pool or by the launch thread itself.
void SsdTrain::request(Step& step, const Visit& visit, std::uint16_t rank,
                       std::span<const Position> ahead, const Position* own, bool own_on_thread) {
  struct Wanted {
    Saved* saved;
    std::size_t index;
    const SavedTensor* tensor;
    std::int32_t item;
    bool on_thread;
  };
  std::vector<Wanted> wanted;
  std::vector<Effect> decisions;
  const auto ask = [&](const Position& at, bool on_thread) {
    auto& all = saved_.at(key(step, at.layer, visit.micro_batch, rank));
    for (const std::size_t i : layers_[at.layer].needed_at[at.op]) {
      Saved& saved = all.at(i);
      if (!saved.is_stored || saved.is_requested) continue;
      saved.is_requested = true;
      wanted.push_back({&saved, i, &layers_[at.layer].tensors[i].saved,
                        static_cast<std::int32_t>(at.layer), on_thread});
      if (saved.stays) decisions.push_back(decide(*saved.stays));
      if (saved.dropped) decisions.push_back(decide(*saved.dropped));
    }
  };
  for (const Position& at : ahead) ask(at, false);
  if (own != nullptr) ask(*own, own_on_thread);
  if (wanted.empty()) return;
  const TaskId trigger =
      step.on_thread("request tensors", rank, wanted.front().item, Delay{}, {}, decisions);
  for (const Wanted& w : wanted) {
    Saved& saved = *w.saved;
    saved.loaded_buffer = step.plan().buffer(step.gpu_pool(rank), loaded_owner_, w.tensor->bytes);
    const When when = saved.stays ? When::no(*saved.stays) : When{};
    std::vector<TaskId> after = {trigger};
    if (!saved.stays) after.push_back(*saved.stored);  // else it has ended, or nothing is read
    const Transport::Job job{.name = "load",
                             .rank = rank,
                             .item = w.item,
                             .bytes = w.tensor->bytes,
                             .when = when,
                             .after = after,
                             .at_start = {allocate(saved.loaded_buffer, when)},
                             .at_end = {},
                             .content = content(step, of_layer(visit, w.item), rank, w.index),
                             .buffer = saved.loaded_buffer};
    saved.loaded =
        (w.on_thread ? transport_.load_on_thread(step, job) : transport_.load(step, job)).last;
  }
}

void SsdTrain::prefetch_last_of(Step& step, const Action& action) {
  const auto piece = static_cast<std::size_t>(action.piece(step.layout().stages()));
  const Position last = last_modules_[piece];
  const Visit visit{last.layer, Pass::backward, action.stage, action.micro_batch};
  for (const std::uint16_t r : step.crew(action.stage)) {
    request(step, visit, r, {&last, 1}, nullptr, false);
  }
}

// Each rank measures its own bandwidth and finds its own boundary.
void SsdTrain::learn(const Timeline& timeline) {
  for (std::size_t r = 0; r < profile_.size(); ++r) {
    boundary_[r] = profile_[r].boundary(timeline, options_.bandwidth, options_.flips);
  }
  is_profiled_ = true;
}

std::string SsdTrain::describe() const {
  return fmt::format("SSDTrain: activations to {}{}", where_,
                     options_.is_adaptive ? ", adaptive keep" : "");
}

}  // namespace

std::unique_ptr<ActivationPolicy> make_ssdtrain(yaml::Map& options, const Machine& machine) {
  return std::make_unique<SsdTrain>(read_ssdtrain(options, machine), machine);
}

}  // namespace tidegate
