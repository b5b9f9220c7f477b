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
                       const TrainingOptions& options, ByteStore* files)
    : plan_(plan),
      workload_(workload),
      graph_(graph),
      options_(options),
      files_(files),
      initial_(initial_parameters(graph, options.seed)) {
  ensure(plan.meaning.is_carried(), "the plan carries its meaning");
  ensure(unsupported(workload).empty(), "the workload has an arithmetic");
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    for (std::size_t op = 0; op < graph.layers[l].operators.size(); ++op) {
      for (std::size_t i = 0; i < graph.layers[l].operators[op].parameters.size(); ++i)
        tensors_.push_back({l, op, i});
    }
  }
}

const Values& Arithmetic::initial(const Content& content) const {
  const Numbered& t = tensors_.at(static_cast<std::size_t>(content.tensor));
  return initial_[t.layer][t.op][t.slot];
}

Arithmetic::Place Arithmetic::place(const Access& a) {
  constexpr std::uint64_t of_pool = 1ULL << 32;
  return {a.content, a.buffer == Access::standing ? of_pool + index(a.pool) : index(a.buffer)};
}

std::vector<Arithmetic::Read> Arithmetic::reads(TaskId task, const Deed& deed) const {
  const std::scoped_lock lock(mutex_);
  std::vector<Read> found;
  for (const Access& a : plan_.meaning.of(deed)) {
    if (a.how != How::read) continue;
    const auto at = cells_.find(place(a));
    const Content* content = &plan_.meaning.content(a.content);
    if (at != cells_.end()) {
      const bool is_known = !found.empty() && found.back().content == content;
      Shared cell = at->second;
      if (is_in_files(a))
        cell =
            std::make_shared<const Cell>(unpacked(*content, files_->get(task, a.pool, a.content)));
      if (!is_known) found.push_back({content, std::move(cell)});
    } else if (a.when.is_always()) {
      throw std::logic_error(fmt::format("task {} '{}' reads what is not there: {}", index(task),
                                         plan_.label(task), to_text(*content)));
    }
  }
  return found;
}

void Arithmetic::write(TaskId task, const Access& a, Cell cell) {
  const Content& content = plan_.meaning.content(a.content);
  const bool is_in_file = is_in_files(a);
  if (is_in_file) files_->put(task, a.pool, a.content, packed(content, cell));
  const auto shared = std::make_shared<const Cell>(is_in_file ? Cell() : std::move(cell));
  const std::scoped_lock lock(mutex_);
  cells_[place(a)] = shared;
  if (a.buffer != Access::standing) in_buffer_[a.buffer].push_back(place(a));
  if (content.kind == Kind::master && !is_in_file) masters_[a.content] = shared;
}

std::int64_t Arithmetic::width_of(const Content& content) const {
  const bool is_fp32 =
      content.kind == Kind::sum32 || content.kind == Kind::master || content.kind == Kind::moments;
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

void Arithmetic::run(TaskId task) {
  for (const Deed& deed : plan_.meaning.of(task)) perform(task, deed);
}

void Arithmetic::perform(TaskId task, const Deed& deed) {
  const std::vector<Read> inputs = reads(task, deed);
  switch (deed.verb) {
    case Verb::forward:
      forward(task, deed, inputs);
      break;
    case Verb::backward:
      backward(task, deed, inputs);
      break;
    case Verb::adam:
      adam(task, deed, inputs);
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
  const std::scoped_lock lock(mutex_);
  for (const Access& a : plan_.meaning.of(deed)) {
    if (a.how == How::forget) cells_.erase(place(a));
  }
}

Cell Arithmetic::made(const Deed& deed, const Content& content,
                      std::span<const Read> inputs) const {
  if (deed.verb == Verb::initialise) {
    if (content.kind != Kind::moments) return of(part(initial(content), content));
    const Values zero(static_cast<std::size_t>(content.count));
    Cell moments;
    moments.values = {zero, zero};
    return moments;
  }
  ensure(!inputs.empty(), "a deed reads something");
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
      Values sum = inputs[0].cell->values[0];
      add_to(sum, inputs.back().cell->values[0], workload_.dtype);
      return of(std::move(sum));
    }
    case Verb::cast:
      return of(rounded_copy(inputs[0].cell->values[0], workload_.dtype));
    default:
      return *inputs[0].cell;  // moved
  }
}

void Arithmetic::adam(TaskId task, const Deed& deed, std::span<const Read> inputs) {
  ensure(inputs.size() == 3, "Adam reads a gradient, the master and the moments");
  const auto& moments = inputs[2].cell->values;
  States states{inputs[1].cell->values[0], moments[0], moments[1]};
  update(states, inputs[0].cell->values[0], options_.adam, plan_.task(task).iteration + 1,
         workload_.accumulation);
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

std::vector<double> Arithmetic::losses() const {
  const std::scoped_lock lock(mutex_);
  std::vector<double> list;
  for (const auto& [when, loss] : losses_) list.push_back(loss);
  return list;
}

NetworkTensors Arithmetic::master() const {
  const std::scoped_lock lock(mutex_);
  NetworkTensors all = initial_;
  for (const auto& [id, cell] : masters_) {
    const Content& content = plan_.meaning.content(id);
    const Numbered& t = tensors_.at(static_cast<std::size_t>(content.tensor));
    std::ranges::copy(cell->values[0], all[t.layer][t.op][t.slot].begin() + content.first);
  }
  return all;
}

}  // namespace tidegate::train
