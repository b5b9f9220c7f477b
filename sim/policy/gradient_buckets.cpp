#include "sim/policy/gradient_buckets.hpp"

#include <algorithm>
#include <string>

#include "sim/policy/bindings.hpp"

namespace tidegate {
namespace {

// Buckets whose reduction may be outstanding before the compute stream waits
// (DeepSpeed stage 3, max_param_reduce_events).
constexpr std::size_t buckets_in_flight = 2;

// Memory traffic of the kernels around a reduction, bytes per element of the bucket: gradients are
// copied into the bucket, scaled, and flattened (4 B each: read and write 16 bits); then each rank
// copies its slice (4 B) and takes its norm in double precision (cast 2 + 8 B, norm 8 B).
// assumed: counted from the sequence of kernels in DeepSpeed's stage 3, not measured.
constexpr double traffic_before = 12;
constexpr double traffic_after = 22;

// Tensors of a layer by operator, with their places in the order of registration; `before` counts
// the tensors of earlier layers and is moved on.
std::vector<std::vector<Bucket::Tensor>> tensors_of(const Layer& layer, std::size_t& before) {
  struct Place {
    std::size_t op, slot;
    std::int32_t order;
  };
  std::vector<std::vector<Bucket::Tensor>> tensors(layer.operators.size());
  std::vector<Place> places;
  for (std::size_t op = 0; op < layer.operators.size(); ++op) {
    for (const Parameter& p : layer.operators[op].parameters) {
      places.push_back({op, tensors[op].size(), p.order});
      tensors[op].push_back({p.elements, 0});
    }
  }
  std::ranges::stable_sort(places, {}, &Place::order);
  for (const Place& p : places) tensors[p.op][p.slot].index = before++;
  return tensors;
}

}  // namespace

GradientBuckets::GradientBuckets(Step& step, OptimizerPolicy& optimizer)
    : step_(step),
      optimizer_(optimizer),
      tensors_(step.graph().layers.size()),
      buckets_(step.layout().stages()),
      produced_by_(step.ranks()),
      known_(step.ranks()),
      flat_owner_(step.plan().owner("flat bucket")) {
  for (std::uint16_t r = 0; r < step.ranks(); ++r) {
    lanes_.push_back(step.plan().lane("rank" + std::to_string(r) + ".gradients", r));
  }
  for (std::uint16_t s = 0; s < step.layout().stages(); ++s) number_tensors(s);
}

// Buckets name tensors by their place in the order of registration of the stage.
void GradientBuckets::number_tensors(std::uint16_t stage) {
  std::size_t before = 0;
  const auto& pieces = step_.pieces();
  for (std::size_t i = stage; i < pieces.size(); i += step_.layout().stages()) {
    for (std::size_t l = pieces[i].first; l < pieces[i].last; ++l) {
      tensors_[l] = tensors_of(step_.graph().layers[l], before);
    }
  }
}

void GradientBuckets::begin(std::uint16_t stage, std::int64_t micro_step) {
  const bool is_boundary = micro_step + 1 == step_.setting().accumulation;
  buckets_[stage] = {
      .tensors = {}, .micro_step = micro_step, .is_boundary = is_boundary, .stage = stage};
}

void GradientBuckets::produced(const Visit& visit, const SubModule& part) {
  const auto& tensors = tensors_[visit.layer];
  for (std::size_t op = part.last + 1; op-- > part.first && op < tensors.size();) {
    for (auto t = tensors[op].rbegin(); t != tensors[op].rend(); ++t) collect(visit.stage, *t);
  }
}

void GradientBuckets::collect(std::uint16_t stage, const Bucket::Tensor& tensor) {
  Bucket& bucket = buckets_[stage];
  if (bucket.elements > 0 && bucket.elements + tensor.elements > zero().reduce_bucket) {
    reduce(stage);
  }
  bucket.tensors.push_back(tensor);
  bucket.elements += tensor.elements;
  for (const std::uint16_t r : step_.crew(stage)) produced_by_[r] = *step_.rank(r).last_kernel;
}

void GradientBuckets::reduce(std::uint16_t stage) {
  Bucket& bucket = buckets_[stage];
  if (bucket.elements == 0) return;
  // ZeRO 0 and 1 accumulate locally and reduce once, at the boundary.
  if (bucket.is_boundary || zero().stage >= 2) {
    for (const Communicator& c : step_.data_groups(stage)) reduce(bucket, c);
  }
  bucket.tensors.clear();
  bucket.elements = 0;
  ++bucket.number;
}

void GradientBuckets::reduce(const Bucket& bucket, const Communicator& communicator) {
  const RankGroup& group = communicator.group;
  fill(bucket, group);
  const Bytes bytes(static_cast<double>(bucket.elements) * element_bytes());
  const bool scatters = zero().stage > 0 && zero().reduce_scatter;
  const auto kind = scatters ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  // The bucket's tensors are flattened into a buffer of their own, which lives until the slices
  // have left it (DeepSpeed stage 3, all-reduce of the flat bucket).
  flat_.clear(), effects_.clear();
  for (std::uint16_t i = 0; i < group.here && group.size > 1; ++i) {
    flat_.push_back(step_.plan().buffer(step_.gpu_pool(group.rank(i)), flat_owner_, bytes));
    effects_.push_back(allocate(flat_.back()));
  }
  const TaskId reduced = step_.add("reduce bucket", communicator.lane, group.first, bucket.number,
                                   step_.collective(kind, bytes, group), filled_, effects_);
  if (step_.bindings != nullptr) step_.bindings->reduced(reduced, bucket, flat_);
  for (std::uint16_t i = 0; i < group.here; ++i) {
    hand_over(bucket, reduced, group.rank(i), flat_.empty() ? std::optional<BufferId>() : flat_[i]);
  }
}

// The kernels that fill the bucket on every rank, in the gradient stream.
void GradientBuckets::fill(const Bucket& bucket, const RankGroup& group) {
  filled_.clear();
  for (std::uint16_t i = 0; i < group.here; ++i) {
    const std::uint16_t r = group.rank(i);
    const TaskId after[] = {produced_by_[r], step_.rank(r).gradient.value_or(produced_by_[r])};
    filled_.push_back(step_.plan().add(
        {.name = "fill bucket", .lane = lanes_[r], .rank = r, .item = bucket.number},
        kernels(bucket, r, Around::before), after));
  }
}

// The kernels before a reduction, and those that each rank runs on its slice behind it.
WorkId GradientBuckets::kernels(const Bucket& bucket, std::uint16_t rank, Around around) {
  KnownKernels& known = known_[rank][static_cast<std::size_t>(around)];
  if (known.elements == bucket.elements) return known.work;
  known.elements = bucket.elements;
  if (step_.world() == 1) return known.work = step_.plan().work(Delay{});
  constexpr std::int32_t launches = 3;
  const double traffic = around == Around::before
                             ? traffic_before
                             : traffic_after / static_cast<double>(step_.world());
  const Bytes bytes(traffic * static_cast<double>(bucket.elements));
  return known.work = step_.plan().work(Compute{rank, {Elementwise{bytes, launches}}});
}

void GradientBuckets::hand_over(const Bucket& bucket, TaskId reduced, std::uint16_t r,
                                std::optional<BufferId> flat) {
  Rank& rank = step_.rank(r);
  rank.gradient = reduced;
  optimizer_.gradients(step_, r, bucket, reduced);
  if (flat) {
    const TaskId last[] = {*rank.gradient};
    const Effect release[] = {free(*flat)};
    rank.gradient = step_.plan().add(
        {.name = "norm of slice", .lane = lanes_[r], .rank = r, .item = bucket.number},
        kernels(bucket, r, Around::behind), last, release);
  }
  rank.reduced_buckets.push_back(*rank.gradient);
  if (rank.reduced_buckets.size() <= buckets_in_flight) return;
  rank.compute.also(rank.reduced_buckets.front());
  rank.reduced_buckets.pop_front();
}

void GradientBuckets::gather_updated() {
  for (std::uint16_t s = 0; s < step_.layout().stages(); ++s) {
    for (const Communicator& c : step_.data_groups(s)) gather_updated(c);
  }
}

// DeepSpeed's stage 3 gathers the tensors that stay whole on every rank anew after each step
// (stage3.py, persistent_parameters).
void GradientBuckets::gather_updated(const Communicator& communicator) {
  const RankGroup& group = communicator.group;
  const bool keeps_all = zero().stage < 3;
  std::int64_t elements = 0;
  for (const Layer& layer : step_.graph_of(group.first).layers) {
    for (const Operator& op : layer.operators) {
      for (const Parameter& p : op.parameters) {
        if (keeps_all || p.elements < zero().persistence_threshold) elements += p.elements;
      }
    }
  }
  if (elements == 0) return;
  std::vector<TaskId> after;
  for (std::uint16_t i = 0; i < group.here; ++i) {
    const Rank& rank = step_.rank(group.rank(i));
    const auto thread = rank.thread.tasks();
    after.insert(after.end(), thread.begin(), thread.end());
    if (rank.last_kernel) after.push_back(*rank.last_kernel);
  }
  const Bytes bytes(static_cast<double>(elements) * element_bytes());
  const TaskId task = step_.add(
      keeps_all ? "gather updated parameters" : "gather persistent parameters", communicator.lane,
      group.first, -1, step_.collective(CollectiveKind::all_gather, bytes, group), after);
  for (std::uint16_t i = 0; i < group.here; ++i) step_.rank(group.rank(i)).thread.also(task);
  if (step_.bindings != nullptr) bind_gather(task, group.first);
}

// Before the first update, of which a delayed one comes a step late, there is nothing new.
void GradientBuckets::bind_gather(TaskId task, std::uint16_t first_rank) {
  Bindings& bindings = *step_.bindings;
  const bool keeps_all = zero().stage < 3;
  for (const std::int32_t t : bindings.all_tensors(first_rank)) {
    if (!keeps_all && bindings.elements_of(t) >= zero().persistence_threshold) continue;
    if (!bindings.updated_in(first_rank, t)) continue;
    std::vector<PoolId> from;
    for (std::uint16_t r = 0; r < step_.ranks(); ++r)
      from.push_back(keeps_all ? step_.gpu_pool(r)
                               : bindings.updated_in(r, t).value_or(step_.gpu_pool(r)));
    bindings.gathered(task, {t}, from, false, {});
  }
}

}  // namespace tidegate
