#include "sim/policy/gatherer.hpp"

#include <algorithm>

#include "models/base/error.hpp"
#include "sim/policy/bindings.hpp"
#include "sim/policy/policy.hpp"
#include "sim/policy/step.hpp"

namespace tidegate {
namespace {

SubModule whole(const Layer& layer) {
  return {0, layer.operators.empty() ? 0 : layer.operators.size() - 1, 0, 0};
}

std::vector<SubModule> split(const Step& step, const Layer& layer) {
  std::vector<SubModule> parts;
  for (std::size_t i = 0; i < layer.operators.size(); ++i) {
    std::int64_t elements = 0, shard = 0;
    for (const Parameter& p : layer.operators[i].parameters) {
      if (p.elements < step.setting().zero.persistence_threshold) continue;
      elements += p.elements;
      shard += step.shard(p.elements);
    }
    // Operators before the first parameters run with them.
    const bool starts = parts.empty() || (elements > 0 && parts.back().gathered > 0);
    if (starts) parts.push_back({i, i, 0, 0});
    parts.back().last = i;
    parts.back().gathered += elements;
    parts.back().shard += shard;
  }
  if (parts.empty()) parts.push_back(whole(layer));
  return parts;
}

}  // namespace

Gatherer::Gatherer(Step& step, const ParameterPolicy& parameters)
    : parameters_(parameters),
      is_active_(step.setting().zero.stage == 3),
      prefetch_bucket_(step.setting().zero.prefetch_bucket),
      max_live_(step.setting().zero.max_live),
      max_reuse_distance_(step.setting().zero.max_reuse_distance),
      element_bytes_(bytes_per_element(step.setting().graph.dtype)),
      owner_(step.plan().owner("gathered parameters")),
      ranks_(step.ranks()) {
  for (const Layer& layer : step.setting().graph.layers) {
    sub_modules_.push_back(is_active_ ? split(step, layer) : std::vector{whole(layer)});
  }
}

void Gatherer::begin(std::span<const Visit> visits, bool is_recorded) {
  uses_.clear();
  at_ = 0;
  is_recorded_ = is_recorded;
  for (const Visit& visit : visits) add_uses(visit);
  if (!is_active_) return;
  find_reuse(max_reuse_distance_);
  buffers_.resize(uses_.size() * ranks_);
  gathers_.resize(uses_.size() * ranks_);
  kernels_.resize(uses_.size() * ranks_);
}

void Gatherer::add_uses(const Visit& visit) {
  if (visit.pass == Pass::recompute_core) return;  // the attention core has no parameters
  const auto& parts = sub_modules_[visit.layer];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t s = visit.pass == Pass::backward ? parts.size() - 1 - i : i;
    uses_.push_back({.layer = visit.layer, .sub_module = s, .elements = parts[s].gathered});
  }
}

void Gatherer::find_reuse(std::int64_t max_reuse_distance) {
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::vector<std::vector<std::size_t>> last(sub_modules_.size());
  for (std::size_t l = 0; l < last.size(); ++l) last[l].assign(sub_modules_[l].size(), none);
  std::vector<std::int64_t> before(uses_.size() + 1, 0);  // elements of all uses before
  for (std::size_t i = 0; i < uses_.size(); ++i) before[i + 1] = before[i] + uses_[i].elements;
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    std::size_t& previous = last[uses_[i].layer][uses_[i].sub_module];
    if (previous != none && before[i] - before[previous + 1] <= max_reuse_distance) {
      uses_[previous].reused = i;
      uses_[i].is_gathered_before = true;
    }
    previous = i;
  }
}

bool Gatherer::is_present(std::size_t use) const {
  return uses_[use].elements == 0 || uses_[use].is_gathered_before || uses_[use].is_gathered;
}

// Whether the uses between the last one computed and `use` leave room below max_live.
bool Gatherer::may_prefetch(std::size_t use) const {
  std::int64_t waiting = 0;
  for (std::size_t i = at_; i < use; ++i) waiting += uses_[i].elements;
  return waiting < max_live_;
}

Gatherer::Ready Gatherer::next(Step& step) {
  ensure(at_ < uses_.size(), "the uses of a micro-step were announced");
  Ready ready;
  if (!is_active_) return ready;
  if (!is_present(at_)) gather(step, at_);
  std::int64_t ahead = 0;
  for (std::size_t i = at_ + 1; is_recorded_ && i < uses_.size() && may_prefetch(i); ++i) {
    if (!is_present(i)) gather(step, i);
    ahead += uses_[i].elements;
    if (ahead >= std::max<std::int64_t>(prefetch_bucket_, 1)) break;
  }
  const Use& use = uses_[at_];
  if (use.elements == 0) return ready;
  ready.after = row(gathers_, at_);
  if (use.reused) {
    std::ranges::copy(row(buffers_, at_), row(buffers_, *use.reused).begin());
    std::ranges::copy(row(gathers_, at_), row(gathers_, *use.reused).begin());
    uses_[*use.reused].is_gathered = true;
  } else {
    ready.frees = row(buffers_, at_);
  }
  return ready;
}

void Gatherer::used(std::span<const TaskId> kernels) {
  if (is_active_) std::ranges::copy(kernels, row(kernels_, at_).begin());
  ++at_;
}

void Gatherer::gather(Step& step, std::size_t index) {
  for (const Communicator& c : step.data_groups(0)) gather(step, index, c);
  uses_[index].is_gathered = true;
}

void Gatherer::gather(Step& step, std::size_t index, const Communicator& communicator) {
  const Use& use = uses_[index];
  const auto item = static_cast<std::int32_t>(use.layer);
  const Bytes bytes(static_cast<double>(use.elements) * element_bytes_);
  const RankGroup& group = communicator.group;
  const auto buffers = row(buffers_, index);
  const Shards shards{sub_modules_[use.layer][use.sub_module].shard, tensors_of(step, use)};
  after_.clear(), effects_.clear();
  for (std::uint16_t i = 0; i < group.here; ++i) {
    const std::uint16_t r = group.rank(i);
    const auto thread = step.rank(r).thread.tasks();
    gate_.clear();
    add_gate(index, r, gate_);
    gate_.insert(gate_.end(), thread.begin(), thread.end());
    parameters_.fetch(step, r, item, shards, gate_, after_);
    buffers[r] = step.plan().buffer(step.gpu_pool(r), owner_, bytes);
    effects_.push_back(allocate(buffers[r]));
  }
  const Work work = step.collective(CollectiveKind::all_gather, bytes, group);
  const TaskId task =
      step.add("gather parameters", communicator.lane, group.first, item, work, after_, effects_);
  for (std::uint16_t i = 0; i < group.here; ++i) row(gathers_, index)[group.rank(i)] = task;
  if (step.bindings == nullptr) return;
  std::vector<PoolId> from;
  for (std::uint16_t r = 0; r < step.ranks(); ++r) from.push_back(step.gpu_pool(r));
  step.bindings->gathered(task, shards.tensors, from, !parameters_.stays_on_gpu(), buffers);
}

std::vector<std::int32_t> Gatherer::tensors_of(const Step& step, const Use& use) const {
  if (step.bindings == nullptr) return {};
  const SubModule& part = sub_modules_[use.layer][use.sub_module];
  return step.bindings->tensors_of(use.layer, part.first, part.last,
                                   step.setting().zero.persistence_threshold);
}

// What must have happened on a rank before `use` may be gathered; at_ is the use being entered.
void Gatherer::add_gate(std::size_t use, std::uint16_t rank, std::vector<TaskId>& gate) const {
  const auto at = [&](const std::vector<TaskId>& list, std::size_t i) {
    return list[i * ranks_ + rank];
  };
  // The entered use begins when its parameters are there and the kernels before it have ended.
  if (use > at_ && uses_[at_].is_gathered) gate.push_back(at(gathers_, at_));
  if (at_ > 0) gate.push_back(at(kernels_, at_ - 1));
  std::int64_t live = 0;
  for (std::size_t i = use; i-- > 0;) {
    live += uses_[i].elements;
    if (live < max_live_) continue;
    if (i < at_) gate.push_back(at(kernels_, i));
    break;
  }
}

}  // namespace tidegate
