#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "validate/gpu_times/trace.hpp"

namespace tidegate {
namespace {

using Range = TraceEvents::Range;

// The range that holds `t`, of ranges that are sorted and apart.
std::optional<std::size_t> range_at(const std::vector<Range>& sorted, double t) {
  const auto next = std::ranges::upper_bound(sorted, t, {}, &Range::from);
  if (next == sorted.begin() || !std::prev(next)->contains(t)) return std::nullopt;
  return static_cast<std::size_t>(std::prev(next) - sorted.begin());
}

std::vector<Range> sorted(std::vector<Range> ranges) {
  std::ranges::sort(ranges, {}, &Range::from);
  return ranges;
}

// Which whole training step each profiler step is a part of.
std::vector<std::optional<std::size_t>> whole_steps(const std::vector<Range>& steps,
                                                    const std::vector<Range>& updates) {
  std::vector<std::optional<std::size_t>> whole(steps.size());
  std::vector<bool> ends(steps.size(), updates.empty());
  for (const Range& u : updates) {
    if (const auto at = range_at(steps, u.from)) ends[*at] = true;
  }
  if (std::ranges::find(ends, true) == ends.end()) ends.assign(steps.size(), true);
  std::vector<std::pair<std::size_t, std::size_t>> groups;  // first, behind the last
  for (std::size_t i = 0, first = 0; i < steps.size(); ++i) {
    if (!ends[i]) continue;
    groups.emplace_back(first, i + 1);
    first = i + 1;
  }
  // The first may have begun before the trace: it is shorter than the others then.
  std::size_t longest = 0;
  for (const auto& [from, to] : groups) longest = std::max(longest, to - from);
  std::size_t count = 0;
  for (const auto& [from, to] : groups) {
    if (to - from < longest) continue;
    for (std::size_t i = from; i < to; ++i) whole[i] = count;
    ++count;
  }
  return whole;
}

// The GPU with most kernels, and how many there are.
std::pair<std::int64_t, std::int64_t> busiest(const TraceEvents& events) {
  std::map<std::int64_t, std::int64_t> kernels;
  for (const auto& k : events.kernels) ++kernels[k.device];
  const auto most =
      std::ranges::max_element(kernels, {}, [](const auto& entry) { return entry.second; });
  return {most->first, static_cast<std::int64_t>(kernels.size())};
}

class Attribution {
 public:
  explicit Attribution(const TraceEvents& events)
      : steps_(sorted(events.steps)),
        updates_(sorted(events.updates)),
        autograd_(events.autograd.begin(), events.autograd.end()) {
    for (const auto& l : events.launches) launches_.emplace(l.correlation, l);
    for (const Range& s : steps_) autograd_.erase(s.thread);
  }

  const std::vector<Range>& steps() const { return steps_; }
  const std::vector<Range>& updates() const { return updates_; }
  std::optional<TraceEvents::Launch> launch(const TraceEvents::Kernel& k) const {
    const auto at = launches_.find(k.correlation);
    if (at == launches_.end()) return std::nullopt;
    return at->second;
  }
  Phase phase(const std::optional<TraceEvents::Launch>& launch) const {
    if (!launch) return Phase::other;
    if (autograd_.contains(launch->thread)) return Phase::backward;
    const auto update = range_at(updates_, launch->at);
    if (update && updates_[*update].thread == launch->thread) return Phase::update;
    return Phase::forward;
  }

 private:
  std::vector<Range> steps_, updates_;
  std::set<std::int64_t> autograd_;
  std::unordered_map<std::int64_t, TraceEvents::Launch> launches_;
};

}  // namespace

TracedSteps steps_of(const TraceEvents& events, const std::string& name) {
  if (events.kernels.empty())
    throw InputError({name, 0, 0}, "",
                     "has no GPU kernels; profile with activities=[ProfilerActivity.CPU, "
                     "ProfilerActivity.CUDA] on a GPU");
  if (events.steps.empty())
    throw InputError({name, 0, 0}, "",
                     "has no training steps; call prof.step() once an iteration, so that the trace "
                     "has ProfilerStep ranges");
  const Attribution attribution(events);
  const auto whole = whole_steps(attribution.steps(), attribution.updates());
  const auto [device, devices] = busiest(events);
  TracedSteps traced{.file = name, .steps = {}, .device = device, .devices = devices};
  traced.profiler_steps = static_cast<std::int64_t>(attribution.steps().size());
  traced.elementwise_names = events.elementwise_names;
  std::map<std::size_t, ClassTimes> times;
  for (const auto& k : events.kernels) {
    if (k.device != device) continue;
    const auto launch = attribution.launch(k);
    const auto at = range_at(attribution.steps(), launch ? launch->at : k.from);
    if (!at || !whole[*at]) continue;
    traced.has_phases = traced.has_phases || launch.has_value();
    const auto phase = static_cast<std::size_t>(attribution.phase(launch));
    times[*whole[*at]][phase][static_cast<std::size_t>(k.kind)] += 1e-6 * k.duration;
    ++traced.kernels;
  }
  for (const auto& [step, of_step] : times) traced.steps.push_back(of_step);
  if (traced.steps.empty())
    throw InputError({name, 0, 0}, "", "has kernels, but none within its ProfilerStep ranges");
  return traced;
}

}  // namespace tidegate
