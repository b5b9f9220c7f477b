#include "sim/policy/bindings.hpp"

#include <algorithm>

#include "models/base/error.hpp"

/// Numbers, places, and what is moved, reduced and updated; kernels are in bindings_compute.cpp.
namespace tidegate {

using How = Access::How;
using Kind = Content::Kind;
using Verb = Deed::Verb;

void Bindings::refuse(const std::string& what) {
  throw InputError("a plan cannot say yet what its tasks mean with " + what +
                   "; ask for the plan without its meaning");
}

Bindings::Bindings(Step& step) : step_(step) {
  if (step.layout().parallel().tensor > 1) refuse("tensor parallelism");
  if (step.world() * step.layout().stages() != step.ranks()) refuse("several nodes");
  number_tensors();
  if (tied_ > 0 && step.layout().stages() > 1)
    refuse("a table that the first and the last stage of a pipeline share");
  const std::vector<BufferId> in(tensors_.size(), Access::standing);
  parameter_in_.assign(step.ranks(), in);
  slice_in_.assign(step.ranks(), in);
  std::vector<std::uint16_t> batches;
  for (std::uint16_t r = 0; r < step.ranks(); ++r) {
    updated_in_.emplace_back(tensors_.size());
    batches.push_back(owner(r));
    stand_whole(r);
  }
  step.plan().mean(std::move(batches));
}

// Parameters that every rank keeps whole.
void Bindings::stand_whole(std::uint16_t rank) {
  const std::int64_t least = zero().stage < 3 ? 0 : zero().persistence_threshold;
  for (const std::int32_t t : all_tensors(rank)) {
    const bool is_whole = least == 0 || elements_of(t) < least;
    if (is_whole) stands(Kind::parameter, {t}, rank, step_.gpu_pool(rank));
  }
}

void Bindings::number_tensors() {
  by_registration_.resize(step_.layout().stages());
  const auto& pieces = step_.pieces();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto stage = static_cast<std::uint16_t>(i % step_.layout().stages());
    for (std::size_t l = pieces[i].first; l < pieces[i].last; ++l) number_layer(l, stage);
  }
}

void Bindings::number_layer(std::size_t l, std::uint16_t stage) {
  struct Registered {
    std::int32_t number, order;
  };
  const Layer& layer = step_.graph().layers[l];
  std::vector<Registered> places;
  auto& firsts = first_tensor_.emplace_back();
  auto& savers = first_saver_.emplace_back();
  if (layer.operators.empty()) refuse("layers that name no operators");
  for (std::size_t op = 0; op < layer.operators.size(); ++op) {
    firsts.push_back(static_cast<std::int32_t>(tensors_.size()));
    for (const Parameter& p : layer.operators[op].parameters) {
      places.push_back({static_cast<std::int32_t>(tensors_.size()), p.order});
      tensors_.push_back({l, op, p.elements, stage});
    }
    for (const SavedTensor& t : layer.operators[op].saved) savers.try_emplace(t.identity, op);
    const bool is_projection = layer.kind == LayerKind::head &&
                               layer.operators[op].name == "projection" &&
                               layer.operators[op].parameters.empty();
    if (is_projection) tied_ = l;
  }
  firsts.push_back(static_cast<std::int32_t>(tensors_.size()));
  std::ranges::stable_sort(places, {}, &Registered::order);
  for (const Registered& p : places) by_registration_[stage].push_back(p.number);
}

Bindings::Tensors Bindings::tensors_of(std::size_t layer, std::size_t first, std::size_t last,
                                       std::int64_t least) const {
  Tensors list;
  for (std::int32_t t = first_tensor_[layer][first]; t < first_tensor_[layer][last + 1]; ++t) {
    if (tensors_[static_cast<std::size_t>(t)].elements >= least) list.push_back(t);
  }
  return list;
}

Bindings::Tensors Bindings::all_tensors(std::uint16_t rank) const {
  Tensors list = by_registration_[step_.layout().stage_of(rank)];
  std::ranges::sort(list);
  return list;
}

std::int32_t Bindings::whole_of(std::int32_t tensor) const {
  const auto count = static_cast<std::int32_t>(tensors_.size());
  return tensor < count ? tensor : parts_[static_cast<std::size_t>(tensor - count)].tensor;
}

Bindings::Tensors Bindings::pieces_of(std::int32_t tensor) const {
  const auto cut = cuts_.find(tensor);
  if (cut == cuts_.end()) return {tensor};
  return {cut->second, cut->second + 1};
}

std::pair<std::int32_t, std::int32_t> Bindings::cut(std::int32_t tensor, std::int64_t count) {
  const auto next = static_cast<std::int32_t>(tensors_.size() + parts_.size());
  const auto [at, is_new] = cuts_.try_emplace(tensor, next);
  if (is_new) {
    parts_.push_back({tensor, 0, count});
    parts_.push_back({tensor, count, step_.shard(elements_of(tensor))});
  }
  return {at->second, at->second + 1};
}

Bindings::Tensors Bindings::tensors_of(const Bucket& bucket) const {
  Tensors list;
  for (const Bucket::Tensor& t : bucket.tensors) list.push_back(registered(t.index, bucket.stage));
  return list;
}

std::vector<Bindings::Tensors> Bindings::tensors_of(std::span<const SubGroup> groups,
                                                    std::uint16_t stage) const {
  std::vector<Tensors> lists(groups.size());
  std::size_t group = 0;
  std::int64_t filled = 0;
  for (const std::int32_t t : by_registration_[stage]) {
    lists.at(group).push_back(t);
    filled += step_.shard(tensors_[static_cast<std::size_t>(t)].elements);
    if (filled >= groups[group].elements) ++group, filled = 0;
  }
  return lists;
}

Content Bindings::whole(Kind kind, std::int32_t tensor, std::uint16_t rank) const {
  const Tensor& t = tensors_[static_cast<std::size_t>(tensor)];
  return {.kind = kind, .rank = rank, .tensor = tensor, .count = t.elements};
}

std::uint16_t Bindings::owner(std::uint16_t rank) const {
  return static_cast<std::uint16_t>(rank -
                                    step_.layout().first_rank(step_.layout().stage_of(rank)));
}

// ZeRO 0 owns everything everywhere. The last owner's slice may be shorter, or empty.
Content Bindings::owned(Kind kind, std::int32_t tensor, std::uint16_t rank) const {
  const std::int32_t of = whole_of(tensor);
  Content content = whole(kind, of, rank);
  if (kind == Kind::parameter || zero().stage == 0) return content;
  const std::int64_t all = content.count, shard = step_.shard(all);
  const std::int64_t first = owner(rank) * shard, last = std::min(all, first + shard);
  Part part{of, 0, shard};
  if (of != tensor) part = parts_[static_cast<std::size_t>(tensor) - tensors_.size()];
  content.first = std::min(all, first + part.first);
  content.count = std::max<std::int64_t>(0, std::min(last, first + part.last) - content.first);
  return content;
}

Access Bindings::access(How how, const Content& content, PoolId pool, BufferId buffer, When when) {
  return {step_.plan().content(content), buffer, when, pool, how};
}

void Bindings::mean(TaskId task, Verb verb, std::span<const Access> accesses) {
  step_.plan().mean({.task = task, .verb = verb}, accesses);
}

void Bindings::stands(Kind kind, const Tensors& tensors, std::uint16_t rank, PoolId pool) {
  for (const std::int32_t t : tensors)
    standing_.push_back(access(How::write, owned(kind, t, rank), pool));
}

void Bindings::set_up(TaskId task) {
  for (const Access& a : standing_) mean(task, Verb::initialise, {&a, 1});
}

void Bindings::gathered(TaskId task, const Tensors& tensors, std::span<const PoolId> from,
                        bool forgets, std::span<const BufferId> buffers) {
  for (const std::int32_t t : tensors) {
    std::vector<Access> list;
    const auto crew = step_.crew(stage_of(t));
    for (const std::uint16_t r : crew) {
      for (const std::int32_t piece : pieces_of(t))
        list.push_back(access(How::read, owned(Kind::shard, piece, r), from[r]));
    }
    for (const std::uint16_t r : crew) {
      const BufferId buffer = buffers.empty() ? Access::standing : buffers[r];
      parameter_in_[r][static_cast<std::size_t>(t)] = buffer;
      list.push_back(access(How::write, whole(Kind::parameter, t, r), step_.gpu_pool(r), buffer));
      if (forgets) list.push_back(access(How::forget, owned(Kind::shard, t, r), from[r]));
    }
    mean(task, Verb::gather, list);
  }
}

void Bindings::reduced(TaskId task, const Bucket& bucket, std::span<const BufferId> buffers) {
  for (const std::int32_t t : tensors_of(bucket)) {
    std::vector<Access> list;
    const auto crew = step_.crew(bucket.stage);
    for (const std::uint16_t r : crew)
      list.push_back(access(How::read, whole(Kind::gradient, t, r), step_.gpu_pool(r)));
    for (const std::uint16_t r : crew) {
      BufferId& in = slice_in_[r][static_cast<std::size_t>(t)];
      in = buffers.empty() ? Access::standing : buffers[owner(r)];
      list.push_back(access(How::write, owned(Kind::slice, t, r), step_.gpu_pool(r), in));
    }
    mean(task, Verb::reduce, list);
  }
}

void Bindings::added(TaskId task, const Tensors& tensors, std::uint16_t rank, bool is_first,
                     PoolId sum_in, Kind to, PoolId to_pool) {
  for (const std::int32_t t : tensors) {
    std::vector<Access> list;
    if (!is_first) list.push_back(access(How::read, owned(Kind::sum, t, rank), sum_in));
    const std::int32_t all = whole_of(t);
    list.push_back(access(How::read, owned(Kind::slice, all, rank), step_.gpu_pool(rank),
                          slice_in_[rank][static_cast<std::size_t>(all)]));
    list.push_back(access(How::write, owned(to, t, rank), to_pool));
    mean(task, is_first ? Verb::move : Verb::add, list);
  }
}

void Bindings::moved(TaskId task, const Tensors& tensors, std::uint16_t rank, Place from, Place to,
                     bool forgets) {
  for (const std::int32_t t : tensors) {
    std::vector<Access> list = {access(How::read, owned(from.kind, t, rank), from.pool),
                                access(How::write, owned(to.kind, t, rank), to.pool)};
    if (forgets) list.push_back(access(How::forget, owned(from.kind, t, rank), from.pool));
    mean(task, Verb::move, list);
    const bool is_new = from.kind == Kind::shard && to.pool == step_.gpu_pool(rank) && !forgets;
    if (is_new) updated_in_[rank][static_cast<std::size_t>(whole_of(t))] = to.pool;
  }
}

void Bindings::moved(TaskId task, const Content& content, std::pair<PoolId, BufferId> from,
                     std::pair<PoolId, BufferId> to, bool forgets) {
  std::vector<Access> list = {access(How::read, content, from.first, from.second),
                              access(How::write, content, to.first, to.second)};
  if (forgets) list.push_back(access(How::forget, content, from.first, from.second));
  mean(task, Verb::move, list);
}

void Bindings::made_moments(TaskId task, const Tensors& tensors, std::uint16_t rank, PoolId pool) {
  for (const std::int32_t t : tensors) {
    const Access zero = access(How::write, owned(Kind::moments, t, rank), pool);
    mean(task, Verb::initialise, {&zero, 1});
  }
}

void Bindings::updates(const Update& update) {
  update_ = update;
  step_.plan().mean(update);
}

void Bindings::updated(TaskId task, const Tensors& tensors, std::uint16_t rank, PoolId pool,
                       Kind sum, std::span<const Kind> writes) {
  ensure(update_.keeps_master || !writes.empty(), "an update leaves something");
  std::vector<Kind> states;
  states.push_back(update_.keeps_master ? Kind::master : writes.front());
  const bool is_adam = update_.rule == Update::Rule::adam;
  if (is_adam) states.push_back(Kind::moments);
  for (const std::int32_t t : tensors) {
    std::vector<Access> list = {access(How::read, owned(sum, t, rank), pool)};
    for (const Kind kind : states) list.push_back(access(How::read, owned(kind, t, rank), pool));
    for (const Kind kind : states) list.push_back(access(How::write, owned(kind, t, rank), pool));
    for (const Kind kind : writes) {
      if (kind != states.front()) list.push_back(access(How::write, owned(kind, t, rank), pool));
    }
    mean(task, is_adam ? Verb::adam : Verb::sgd, list);
    if (!writes.empty()) updated_in_[rank][static_cast<std::size_t>(whole_of(t))] = pool;
  }
}

void Bindings::cast(TaskId task, const Tensors& tensors, std::uint16_t rank, PoolId pool) {
  for (const std::int32_t t : tensors) {
    const Access list[] = {access(How::read, owned(Kind::master, t, rank), pool),
                           access(How::write, owned(Kind::shard, t, rank), pool)};
    mean(task, Verb::cast, list);
    updated_in_[rank][static_cast<std::size_t>(whole_of(t))] = pool;
  }
}

}  // namespace tidegate
