#include <utility>

#include "models/base/error.hpp"
#include "validate/train/arithmetic.hpp"

/// Operators of a plan: what flows in, what is saved, what flows out.
namespace tidegate::train {

using How = Access::How;
using Kind = Content::Kind;

Batch Arithmetic::batch(TaskId task, const Deed& deed, std::uint16_t rank) const {
  return train::batch_of(workload_, options_.seed, start_.step + plan_.task(task).iteration,
                         deed.micro_batch, batch_of(rank));
}

Site Arithmetic::site(const Deed& deed, const Batch& batch) const {
  const Layer& layer = graph_.layers[static_cast<std::size_t>(deed.layer)];
  return {workload_,    layer,        layer.operators[static_cast<std::size_t>(deed.op)],
          batch.tokens, batch.labels, options_.computes()};
}

namespace {

// Sorts what a kernel reads: the flow, the parameters in their order, storages by identity.
struct Operands {
  Cell flow;
  bool has_flow = false;  // or a layer's input in its place
  Tensors parameters;
  Storages storages;
};

template <class Reads>
Operands operands_of(const Reads& inputs) {
  Operands in;
  for (const auto& [content, cell] : inputs) {
    in.has_flow |= content->kind == Kind::flow || content->kind == Kind::border ||
                   (content->kind == Kind::saved && content->tensor == 0);
    if (content->kind == Kind::flow) {
      in.flow = *cell;
    } else if (content->kind == Kind::border) {
      in.flow.flow.stream = cell->values[0];
    } else if (content->kind == Kind::parameter) {
      in.parameters.push_back(cell->values[0]);
    } else if (content->kind == Kind::saved && content->tensor == 0) {
      in.flow.flow.stream = cell->values[0];
    } else if (content->kind == Kind::saved) {
      in.storages[content->tensor] = cell->bytes;
    }
  }
  return in;
}

}  // namespace

void Arithmetic::forward(TaskId task, const Deed& deed, std::span<const Read> inputs) {
  const auto accesses = plan_.meaning.of(deed);
  ensure(!accesses.empty(), "an operator leaves something");
  const std::uint16_t rank = plan_.meaning.content(accesses.front().content).rank;
  const Batch data = batch(task, deed, rank);
  const Site here = site(deed, data);
  Operands in = operands_of(inputs);
  const Values entering = in.flow.flow.stream;
  if (deed.op == 0) in.flow.passing.clear();
  in.flow.passing.merge(in.storages);  // read where operators run alone
  if (deed.verb == Deed::Verb::keep) {
    keep(here, in.flow.flow, in.flow.passing);
  } else if (in.has_flow || !resume(deed, data, in.flow)) {
    train::forward(here, in.parameters, in.flow.flow, in.flow.passing);
  }
  for (const Access& a : accesses) {
    if (a.how != How::write) continue;
    const Content& content = plan_.meaning.content(a.content);
    Cell cell;
    if (content.kind == Kind::flow) {
      cell = in.flow;
    } else if (content.tensor == 0) {
      cell.values.push_back(entering);
    } else {
      cell.bytes = in.flow.passing.at(content.tensor);
    }
    write(task, a, std::move(cell));
  }
  if (here.op.name != "loss" || deed.verb == Deed::Verb::keep) return;
  const std::scoped_lock lock(mutex_);
  losses_[{plan_.task(task).iteration, deed.micro_batch, batch_of(rank)}] = in.flow.flow.loss;
}

// What enters an operator, and the stream that entered its sublayer, from what they have saved;
// true when the operator has saved what it makes.
bool Arithmetic::resume(const Deed& deed, const Batch& data, Cell& cell) const {
  for (Deed before = deed; before.op-- > 0;) {
    const Site one = site(before, data);
    if (one.op.name.ends_with("_residual")) break;
    Flow flow;
    train::resume(one, flow, cell.passing);
    if (!flow.stream.empty()) cell.flow.stream = std::move(flow.stream);
  }
  return train::resume(site(deed, data), cell.flow, cell.passing);
}

void Arithmetic::backward(TaskId task, const Deed& deed, std::span<const Read> inputs) {
  const auto accesses = plan_.meaning.of(deed);
  const std::uint16_t rank = plan_.meaning.content(accesses.front().content).rank;
  const Batch data = batch(task, deed, rank);
  Operands in = operands_of(inputs);
  Tensors gradients = train::backward(site(deed, data), in.parameters, in.flow.flow, in.storages);
  const auto earlier = [&](Kind kind, std::int32_t tensor) -> const Values* {
    for (const Read& r : inputs) {
      if (r.content->kind == kind && r.content->tensor == tensor) return &r.cell->values[0];
    }
    return nullptr;
  };
  std::size_t next = 0;
  for (const Access& a : accesses) {
    if (a.how != How::write) continue;
    const Content& content = plan_.meaning.content(a.content);
    Cell cell;
    if (content.kind == Kind::flow) {
      cell = in.flow;
    } else {
      Values& sum = cell.values.emplace_back(std::move(gradients.at(next++)));
      round_all(sum, workload_.dtype);
      // As without a plan: the head's part of a shared table is added first, then earlier
      // micro-steps.
      if (content.kind == Kind::gradient) {
        for (const Kind kind : {Kind::tied, Kind::gradient}) {
          const Values* before = earlier(kind, content.tensor);
          if (before != nullptr) add_to(sum, *before, workload_.dtype, options_.computes());
        }
      }
    }
    write(task, a, std::move(cell));
  }
}

}  // namespace tidegate::train
