#include "validate/train/arithmetic.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate::train {

using How = Access::How;
using Kind = Content::Kind;
using Verb = Deed::Verb;

namespace {

Values part(const Values& all, const Content& content) {
  const auto first = all.begin() + content.first;
  return {first, first + content.count};
}

// Of the numbers of a slice, those of a piece of it.
Values within(const Content& slice, const Content& piece, const Values& all) {
  if (slice.first == piece.first && slice.count == piece.count) return all;
  const auto first = all.begin() + (piece.first - slice.first);
  return {first, first + piece.count};
}

Cell of(Values values) {
  Cell cell;
  cell.values.push_back(std::move(values));
  return cell;
}

Values rounded_copy(Values values, DType type) {
  round_all(values, type);
  return values;
}

}  // namespace

Arithmetic::Arithmetic(const Plan& plan, const Workload& workload, const LayerGraph& graph,
                       const TrainingOptions& options, ByteStore* store)
    : plan_(plan),
      workload_(workload),
      graph_(graph),
      options_(options),
      store_(store),
      start_(options.start != nullptr ? *options.start : initial_state(graph, options.seed)) {
  ensure(plan.meaning.is_carried(), "the plan carries its meaning");
  ensure(unsupported(workload).empty(), "the workload has an arithmetic");
  has_shards_ = std::ranges::find(plan.meaning.contents, Kind::shard, &Content::kind) !=
                plan.meaning.contents.end();
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    for (std::size_t op = 0; op < graph.layers[l].operators.size(); ++op) {
      for (std::size_t i = 0; i < graph.layers[l].operators[op].parameters.size(); ++i)
        tensors_.push_back({l, op, i});
    }
  }
}

Cell Arithmetic::initial(const Content& content) const {
  const Numbered& t = tensors_.at(static_cast<std::size_t>(content.tensor));
  const auto of_state = [&](const NetworkTensors& all) {
    return part(all[t.layer][t.op][t.slot], content);
  };
  if (content.kind == Kind::moments) {
    Cell moments;
    moments.values = {of_state(start_.first), of_state(start_.second)};
    return moments;
  }
  const DType type = content.kind == Kind::master ? DType::fp32 : workload_.dtype;
  return of(rounded_copy(of_state(start_.master), type));
}

// Without masters the owner's parameters are what the update goes on from.
bool Arithmetic::is_state(const Content& content) const {
  if (content.kind == Kind::master || content.kind == Kind::moments) return true;
  return !rule().keeps_master && content.kind == (has_shards_ ? Kind::shard : Kind::parameter);
}

// Null when it is not there.
Arithmetic::Shared Arithmetic::at(TaskId task, const Access& a) const {
  if (is_stored(a)) {
    const auto bytes = store_->get(task, a);
    if (!bytes) return nullptr;
    return std::make_shared<const Cell>(unpacked(plan_.meaning.content(a.content), *bytes));
  }
  const std::scoped_lock lock(mutex_);
  const auto found = cells_.find(place_of(a));
  return found == cells_.end() ? nullptr : found->second;
}

std::vector<Arithmetic::Read> Arithmetic::reads(TaskId task, const Deed& deed) const {
  std::vector<Read> found;
  for (const Access& a : plan_.meaning.of(deed)) {
    if (a.how != How::read) continue;
    const Content* content = &plan_.meaning.content(a.content);
    const bool is_known = !found.empty() && found.back().content == content;
    if (is_known) continue;
    if (Shared cell = at(task, a)) {
      found.push_back({content, std::move(cell)});
    } else if (a.when.is_always()) {
      throw std::logic_error(fmt::format("task {} '{}' reads what is not there: {}", index(task),
                                         plan_.label(task), to_text(*content)));
    }
  }
  return found;
}

void Arithmetic::write(TaskId task, const Access& a, Cell cell) {
  const Content& content = plan_.meaning.content(a.content);
  const bool is_elsewhere = is_stored(a);
  if (is_elsewhere) store_->put(task, a, packed(content, cell));
  const bool is_in_memory = plan_.pools[index(a.pool)].place.tier != Tier::storage;
  const bool is_kept = is_state(content) && is_in_memory;
  if (is_elsewhere && !is_kept) return;
  const auto shared = std::make_shared<const Cell>(std::move(cell));
  const std::scoped_lock lock(mutex_);
  if (is_kept) states_[a.content] = shared;
  if (is_elsewhere) return;
  cells_[place_of(a)] = shared;
  if (a.buffer != Access::standing) in_buffer_[a.buffer].push_back(place_of(a));
}

std::int64_t Arithmetic::width_of(const Content& content) const {
  const bool is_fp32 = content.kind == Kind::sum32 || content.kind == Kind::master ||
                       (content.kind == Kind::moments && rule().keeps_master);
  return is_fp32 ? 4 : static_cast<std::int64_t>(bytes_per_element(workload_.dtype));
}

std::vector<std::byte> Arithmetic::packed(const Content& content, const Cell& cell) const {
  std::vector<std::byte> bytes = cell.bytes;
  for (const Values& values : cell.values) {
    const auto more = encode(values, width_of(content), workload_.dtype);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

Cell Arithmetic::unpacked(const Content& content, std::span<const std::byte> bytes) const {
  Cell cell;
  if (content.kind == Kind::saved && content.tensor > 0) {
    cell.bytes.assign(bytes.begin(), bytes.end());
    return cell;
  }
  const std::size_t parts = content.kind == Kind::moments ? 2 : 1;
  const std::size_t size = bytes.size() / parts;
  for (std::size_t i = 0; i < parts; ++i)
    cell.values.push_back(
        decode(bytes.subspan(i * size, size), width_of(content), workload_.dtype));
  return cell;
}

void Arithmetic::free(BufferId buffer) {
  const std::scoped_lock lock(mutex_);
  const auto found = in_buffer_.find(buffer);
  if (found == in_buffer_.end()) return;
  for (const Place& p : found->second) cells_.erase(p);
  in_buffer_.erase(found);
}

void Arithmetic::run(TaskId task, std::optional<std::uint16_t> only) {
  for (const Deed& deed : plan_.meaning.of(task)) {
    const bool is_others =
        only && deed.verb == Verb::initialise &&
        plan_.meaning.content(plan_.meaning.of(deed).front().content).rank != *only;
    if (!is_others) perform(task, deed);
  }
}

void Arithmetic::perform(TaskId task, const Deed& deed) {
  const std::vector<Read> inputs = reads(task, deed);
  switch (deed.verb) {
    case Verb::forward:
    case Verb::keep:
      forward(task, deed, inputs);
      break;
    case Verb::backward:
      backward(task, deed, inputs);
      break;
    case Verb::adam:
    case Verb::sgd:
      update(task, deed, inputs);
      break;
    case Verb::initialise:
    case Verb::move:
    case Verb::gather:
    case Verb::reduce:
    case Verb::add:
    case Verb::cast:
      for (const Access& a : plan_.meaning.of(deed)) {
        if (a.how == How::write)
          write(task, a, made(deed, plan_.meaning.content(a.content), inputs));
      }
  }
  for (const Access& a : plan_.meaning.of(deed)) {
    if (a.how != How::forget) continue;
    if (is_stored(a)) {
      store_->drop(a);
    } else {
      const std::scoped_lock lock(mutex_);
      cells_.erase(place_of(a));
    }
  }
}

Cell Arithmetic::made(const Deed& deed, const Content& content,
                      std::span<const Read> inputs) const {
  if (deed.verb == Verb::initialise) return initial(content);
  ensure(!inputs.empty(), "a deed reads something");
  const Cell& first = *inputs[0].cell;
  switch (deed.verb) {
    case Verb::gather: {
      Values whole;
      for (const Read& r : inputs)
        whole.insert(whole.end(), r.cell->values[0].begin(), r.cell->values[0].end());
      return of(std::move(whole));
    }
    case Verb::reduce: {
      std::vector<const Values*> ranks;
      for (const Read& r : inputs) ranks.push_back(&r.cell->values[0]);
      return of(part(mean_of(ranks, workload_.dtype), content));
    }
    case Verb::add: {
      Values sum = first.values[0];
      add_to(sum, within(*inputs.back().content, content, inputs.back().cell->values[0]),
             workload_.dtype);
      return of(std::move(sum));
    }
    case Verb::cast:
      return of(rounded_copy(first.values[0], workload_.dtype));
    default:  // moved
      if (content.kind == Kind::border) return of(first.flow.stream);
      if (content.kind == Kind::shard) return of(rounded_copy(first.values[0], workload_.dtype));
      if (content.count < inputs[0].content->count)
        return of(within(*inputs[0].content, content, first.values[0]));
      return first;
  }
}

void Arithmetic::update(TaskId task, const Deed& deed, std::span<const Read> inputs) {
  const bool has_moments = deed.verb == Verb::adam;
  ensure(inputs.size() == (has_moments ? 3 : 2), "an update reads a gradient and what it keeps");
  States states{.master = inputs[1].cell->values[0], .first = {}, .second = {}};
  if (has_moments) {
    states.first = inputs[2].cell->values[0];
    states.second = inputs[2].cell->values[1];
  }
  TrainingOptions options = options_;
  options.update = rule();
  const bool is_on_gpu = std::holds_alternative<Compute>(plan_.work(task));
  if (!is_on_gpu) options.backend = nullptr;  // states on the host are updated by cores
  train::update(states, inputs[0].cell->values[0], options,
                start_.step + plan_.task(task).iteration + 1, workload_);
  for (const Access& a : plan_.meaning.of(deed)) {
    if (a.how != How::write) continue;
    const Kind kind = plan_.meaning.content(a.content).kind;
    Cell cell;
    if (kind == Kind::moments) {
      cell.values = {states.first, states.second};
    } else {
      const DType type = kind == Kind::master ? DType::fp32 : workload_.dtype;
      cell = of(rounded_copy(states.master, type));
    }
    write(task, a, std::move(cell));
  }
}

}  // namespace tidegate::train
