#include <algorithm>

#include "sim/policy/bindings.hpp"

/// What kernels read and write.
namespace tidegate {

using How = Access::How;
using Kind = Content::Kind;

namespace {

std::int32_t flow_of(Pass pass) {
  return pass == Pass::forward ? 0 : pass == Pass::backward ? 2 : 1;
}

}  // namespace

std::int32_t Bindings::of_run(const Visit& visit) const {
  const std::int64_t before = step_.iteration() * step_.setting().accumulation;
  return static_cast<std::int32_t>(before) + visit.micro_batch;
}

Content Bindings::flow(const Visit& visit, std::uint16_t rank) const {
  return {.kind = Kind::flow,
          .rank = rank,
          .tensor = flow_of(visit.pass),
          .micro_batch = of_run(visit)};
}

Content Bindings::saved(const Visit& visit, std::uint16_t rank, std::int32_t identity,
                        std::int32_t copy) const {
  return {.kind = Kind::saved,
          .rank = rank,
          .layer = static_cast<std::int32_t>(visit.layer),
          .tensor = identity,
          .micro_batch = of_run(visit),
          .copy = copy};
}

void Bindings::put(const Visit& visit, std::uint16_t rank, std::int32_t identity, std::int32_t copy,
                   std::vector<At> places) {
  places_[{rank, visit.micro_batch, visit.layer, identity, copy}] = std::move(places);
}

const std::vector<Bindings::At>* Bindings::places(const Visit& visit, std::uint16_t rank,
                                                  std::int32_t identity, std::int32_t copy) const {
  const auto found = places_.find({rank, visit.micro_batch, visit.layer, identity, copy});
  return found == places_.end() ? nullptr : &found->second;
}

bool Bindings::is_saved_outside_core(std::size_t layer, std::int32_t identity) const {
  return std::ranges::any_of(step_.graph().layers[layer].operators, [&](const Operator& op) {
    return !op.is_attention_core &&
           std::ranges::find(op.saved, identity, &SavedTensor::identity) != op.saved.end();
  });
}

bool Bindings::is_tied(std::size_t layer, std::size_t op) const {
  return tied_ > 0 && layer == tied_ &&
         step_.graph().layers[layer].operators[op].name == "projection";
}

void Bindings::computed(TaskId task, const Visit& visit, const Segment& segment,
                        std::uint16_t rank) {
  const auto& operators = step_.graph().layers[visit.layer].operators;
  for (std::size_t i = 0; i <= segment.last - segment.first; ++i) {
    const bool is_backward = visit.pass == Pass::backward;
    const std::size_t op = is_backward ? segment.last - i : segment.first + i;
    if (is_backward) {
      backward(task, visit, op, rank);
    } else if (visit.pass != Pass::recompute_core || operators[op].is_attention_core) {
      forward(task, visit, op, rank);
    }
  }
}

void Bindings::forward(TaskId task, const Visit& visit, std::size_t op, std::uint16_t rank) {
  const bool is_core_alone = visit.pass == Pass::recompute_core;
  std::vector<Access> list;
  if (!is_core_alone) enter(list, visit, op, rank);
  read_parameters(list, visit, op, rank);
  save(list, visit, op, rank);
  if (!is_core_alone) list.push_back(access(How::write, flow(visit, rank), step_.gpu_pool(rank)));
  step_.plan().mean({.task = task,
                     .verb = Deed::Verb::forward,
                     .layer = static_cast<std::int32_t>(visit.layer),
                     .op = static_cast<std::int32_t>(op),
                     .micro_batch = visit.micro_batch},
                    list);
}

// A kept input is written by the layer's first operator and taken from there when it runs again.
void Bindings::enter(std::vector<Access>& list, const Visit& visit, std::size_t op,
                     std::uint16_t rank) {
  const PoolId gpu = step_.gpu_pool(rank);
  const std::vector<At>* input = op == 0 ? places(visit, rank, 0, 0) : nullptr;
  if (input != nullptr && visit.pass == Pass::recompute) {
    list.push_back(access(How::read, saved(visit, rank, 0, 0), gpu, input->front().buffer));
    places_.erase({rank, visit.micro_batch, visit.layer, 0, 0});
    return;
  }
  if (visit.layer == 0 && op == 0) return;  // the batch
  const bool is_from_stage = op == 0 && visit.pass == Pass::forward && enters_piece(visit, false);
  const Content entering =
      is_from_stage ? border(visit.micro_batch, true, rank) : flow(visit, rank);
  list.push_back(access(How::read, entering, gpu));
  if (is_from_stage) list.push_back(access(How::forget, entering, gpu));
  if (input != nullptr)
    list.push_back(access(How::write, saved(visit, rank, 0, 0), gpu, input->front().buffer));
}

void Bindings::read_parameters(std::vector<Access>& list, const Visit& visit, std::size_t op,
                               std::uint16_t rank) {
  const auto read = [&](std::int32_t t) {
    list.push_back(access(How::read, whole(Kind::parameter, t, rank), step_.gpu_pool(rank),
                          parameter_in_[rank][static_cast<std::size_t>(t)]));
  };
  for (const std::int32_t t : tensors_of(visit.layer, op, op)) read(t);
  if (is_tied(visit.layer, op)) read(0);
}

// What an operator is the first to save, or, of the core alone, what nobody else saves; the rest of
// what it lists is there already.
void Bindings::save(std::vector<Access>& list, const Visit& visit, std::size_t op,
                    std::uint16_t rank) {
  const bool is_core_alone = visit.pass == Pass::recompute_core;
  const auto apart = static_cast<std::int32_t>(op) + 1;
  for (const SavedTensor& t : step_.graph().layers[visit.layer].operators[op].saved) {
    const bool is_there = is_core_alone ? is_saved_outside_core(visit.layer, t.identity)
                                        : first_saver_[visit.layer].at(t.identity) != op;
    for (const std::int32_t copy : {0, apart}) {
      const std::vector<At>* at = places(visit, rank, t.identity, copy);
      if (at == nullptr || (is_there && copy == 0 && !is_core_alone)) continue;
      list.push_back(access(is_there && copy == 0 ? How::read : How::write,
                            saved(visit, rank, t.identity, copy), step_.gpu_pool(rank),
                            at->front().buffer));
    }
  }
}

void Bindings::backward(TaskId task, const Visit& visit, std::size_t op, std::uint16_t rank) {
  const auto& layers = step_.graph().layers;
  const bool is_loss =
      visit.layer + 1 == layers.size() && op + 1 == layers[visit.layer].operators.size();
  const PoolId gpu = step_.gpu_pool(rank);
  std::vector<Access> list;
  const bool is_last = op + 1 == layers[visit.layer].operators.size();
  const bool is_from_stage = is_last && !is_loss && enters_piece(visit, true);
  const Content entering =
      is_from_stage ? border(visit.micro_batch, false, rank) : flow(visit, rank);
  if (!is_loss) list.push_back(access(How::read, entering, gpu));
  if (is_from_stage) list.push_back(access(How::forget, entering, gpu));
  read_parameters(list, visit, op, rank);
  read_saved(list, visit, op, rank);
  write_gradients(list, visit, op, rank);
  list.push_back(access(How::write, flow(visit, rank), gpu));
  step_.plan().mean({.task = task,
                     .verb = Deed::Verb::backward,
                     .layer = static_cast<std::int32_t>(visit.layer),
                     .op = static_cast<std::int32_t>(op),
                     .micro_batch = visit.micro_batch},
                    list);
  release(visit, op, rank);
}

void Bindings::computed_again(TaskId task, const Visit& visit, const Again& again,
                              std::uint16_t rank) {
  const PoolId gpu = step_.gpu_pool(rank);
  const auto& operators = step_.graph().layers[visit.layer].operators;
  Visit rerun = visit;
  rerun.pass = Pass::recompute;
  const auto place = [&](How how, std::int32_t identity) {
    const std::vector<At>* at = places(visit, rank, identity, 0);
    return access(how, saved(visit, rank, identity, 0), gpu,
                  at == nullptr ? Access::standing : at->front().buffer);
  };
  const auto mean = [&](Deed::Verb verb, std::size_t op, std::span<const Access> list) {
    step_.plan().mean({.task = task,
                       .verb = verb,
                       .layer = static_cast<std::int32_t>(visit.layer),
                       .op = static_cast<std::int32_t>(op),
                       .micro_batch = visit.micro_batch},
                      list);
  };
  const auto is_made = [&](std::int32_t identity) {
    return std::ranges::find(again.made, identity) != again.made.end();
  };
  for (std::size_t op = again.first; op < again.end; ++op) {
    std::vector<Access> list;
    if (op > again.first) list.push_back(access(How::read, flow(rerun, rank), gpu));
    read_parameters(list, visit, op, rank);
    for (const SavedTensor& t : operators[op].saved) {
      const bool is_first = first_saver_[visit.layer].at(t.identity) == op;
      if (op == again.first && !is_made(t.identity)) list.push_back(place(How::read, t.identity));
      if (is_made(t.identity) && is_first) list.push_back(place(How::write, t.identity));
    }
    for (const std::int32_t identity : again.with) {
      if (op == again.first && !is_made(identity)) list.push_back(place(How::read, identity));
    }
    list.push_back(access(How::write, flow(rerun, rank), gpu));
    mean(Deed::Verb::forward, op, list);
  }
  std::vector<Access> last = {access(How::read, flow(rerun, rank), gpu)};
  for (const std::int32_t identity : again.made) {
    if (first_saver_[visit.layer].at(identity) == again.end)
      last.push_back(place(How::write, identity));
  }
  if (last.size() > 1) mean(Deed::Verb::keep, again.end, last);
}

// Whether a pass gets what enters its layer from another stage.
bool Bindings::enters_piece(const Visit& visit, bool from_behind) const {
  return step_.layout().stages() > 1 && std::ranges::any_of(step_.pieces(), [&](const Piece& p) {
           return from_behind ? p.last == visit.layer + 1 : p.first == visit.layer;
         });
}

// There is room for one of each micro-batch of a step: that of the step before has been read.
Content Bindings::border(std::int32_t micro_batch, bool is_forward, std::uint16_t rank) const {
  return {
      .kind = Kind::border, .rank = rank, .tensor = is_forward ? 0 : 2, .micro_batch = micro_batch};
}

void Bindings::sent(TaskId task, std::int32_t micro_batch, bool is_forward, std::uint16_t from,
                    std::uint16_t to) {
  Visit visit;
  visit.micro_batch = micro_batch;
  visit.pass = is_forward ? Pass::forward : Pass::backward;
  const Access list[] = {
      access(How::read, flow(visit, from), step_.gpu_pool(from)),
      access(How::write, border(micro_batch, is_forward, to), step_.gpu_pool(to))};
  mean(task, Deed::Verb::move, list);
}

void Bindings::read_saved(std::vector<Access>& list, const Visit& visit, std::size_t op,
                          std::uint16_t rank) {
  const PoolId gpu = step_.gpu_pool(rank);
  for (const SavedTensor& t : step_.graph().layers[visit.layer].operators[op].saved) {
    std::int32_t copy = static_cast<std::int32_t>(op) + 1;
    if (places(visit, rank, t.identity, copy) == nullptr) copy = 0;
    const std::vector<At>* at = places(visit, rank, t.identity, copy);
    const Content content = saved(visit, rank, t.identity, copy);
    if (at == nullptr) {
      list.push_back(access(How::read, content, gpu));  // nowhere: a fault of the plan
      continue;
    }
    for (const At& a : *at) list.push_back(access(How::read, content, gpu, a.buffer, a.when));
  }
}

// Below stage 2 a rank adds up over micro-steps; a table shared with the head adds the head's part
// first.
void Bindings::write_gradients(std::vector<Access>& list, const Visit& visit, std::size_t op,
                               std::uint16_t rank) {
  const PoolId gpu = step_.gpu_pool(rank);
  const bool adds = step_.setting().zero.stage < 2 && visit.micro_batch > 0;
  for (const std::int32_t t : tensors_of(visit.layer, op, op)) {
    if (t == 0 && tied_ > 0) list.push_back(access(How::read, whole(Kind::tied, 0, rank), gpu));
    const Content gradient = whole(Kind::gradient, t, rank);
    if (adds) list.push_back(access(How::read, gradient, gpu));
    list.push_back(access(How::write, gradient, gpu));
  }
  if (is_tied(visit.layer, op)) list.push_back(access(How::write, whole(Kind::tied, 0, rank), gpu));
}

// Behind the backward of the operator that saved a tensor first, nobody needs it any more.
void Bindings::release(const Visit& visit, std::size_t op, std::uint16_t rank) {
  for (const SavedTensor& t : step_.graph().layers[visit.layer].operators[op].saved) {
    const auto apart = static_cast<std::int32_t>(op) + 1;
    places_.erase({rank, visit.micro_batch, visit.layer, t.identity, apart});
    if (first_saver_[visit.layer].at(t.identity) == op)
      places_.erase({rank, visit.micro_batch, visit.layer, t.identity, 0});
  }
}

}  // namespace tidegate
