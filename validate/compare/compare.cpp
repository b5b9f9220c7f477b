#include "validate/compare/comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "models/base/error.hpp"
#include "sim/report/critical_path.hpp"
#include "validate/compare/suspects.hpp"

namespace tidegate {
namespace {

// One of the two runs, with what reports say of it.
struct Side {
  const Timeline& timeline;
  std::vector<Iteration> iterations;
  Steady steady;
  std::vector<PathSegment> path;

  Side(const Plan& plan, const Timeline& t, std::span<const Demand> demands)
      : timeline(t),
        iterations(iterations_of(plan, t)),
        steady(steady_period(iterations)),
        path(critical_path(plan, t, demands, steady)) {}

  Seconds step() const { return steady.time() / steady.iterations(); }
  Seconds phase(std::size_t p) const {
    Seconds sum;
    for (std::size_t i = 0; i < steady.count; ++i) sum += iterations[steady.first + i].phases[p];
    return sum / steady.iterations();
  }
  Seconds time(std::uint32_t t) const {
    return to_seconds(timeline.end[t] - timeline.start[t]) / steady.iterations();
  }
};

std::vector<Group> sorted(std::map<std::string, Group> groups) {
  std::vector<Group> list;
  for (auto& [name, group] : groups) {
    group.name = name;
    list.push_back(std::move(group));
  }
  std::ranges::stable_sort(list, std::greater<>{}, [](const Group& g) { return g.time.measured; });
  return list;
}

// Tasks that belong to the steady iterations and ran in one of the two runs.
template <class NameOf>
std::vector<Group> group(const Plan& plan, const Side& predicted, const Side& measured,
                         NameOf&& name_of_task) {
  std::map<std::string, Group> groups;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    if (!measured.steady.contains(plan.tasks[t].iteration)) continue;
    const Pair time{predicted.time(t), measured.time(t)};
    if (time.predicted == Seconds(0) && time.measured == Seconds(0)) continue;
    Group& g = groups[name_of_task(plan.tasks[t])];
    ++g.tasks;
    g.time.predicted += time.predicted;
    g.time.measured += time.measured;
  }
  return sorted(std::move(groups));
}

std::string step_of(const Plan& plan, const PathSegment& segment) {
  if (segment.blame == Blame::wait || !segment.task) return "wait";
  return plan.names[index(plan.task(*segment.task).name)];
}

std::vector<Group> paths(const Plan& plan, const Side& predicted, const Side& measured) {
  std::map<std::string, Group> groups;
  for (const PathSegment& s : predicted.path) {
    groups[step_of(plan, s)].time.predicted += s.time() / predicted.steady.iterations();
  }
  for (const PathSegment& s : measured.path) {
    Group& g = groups[step_of(plan, s)];
    g.time.measured += s.time() / measured.steady.iterations();
    if (s.blame != Blame::latency) ++g.tasks;
  }
  return sorted(std::move(groups));
}

// By lane, the tasks that ran: in the order in which they ended where one runs at a time, else in
// that of their starts, since nothing decides which of several ends first.
std::vector<std::vector<std::uint32_t>> orders(const Plan& plan, const Timeline& timeline) {
  std::vector<std::vector<std::uint32_t>> lanes(plan.lanes.size());
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    if (is_skipped(plan, TaskId{t}, timeline)) continue;
    lanes[index(plan.tasks[t].lane)].push_back(t);
  }
  for (std::size_t l = 0; l < lanes.size(); ++l) {
    const auto& by = plan.lanes[l].width == 1 ? timeline.end : timeline.start;
    std::ranges::stable_sort(lanes[l], {}, [&](std::uint32_t t) { return by[t]; });
  }
  return lanes;
}

std::vector<std::string> reordered(const Plan& plan, const Timeline& predicted,
                                   const Timeline& measured) {
  const auto expected = orders(plan, predicted), seen = orders(plan, measured);
  std::vector<std::string> lanes;
  for (std::size_t l = 0; l < expected.size(); ++l) {
    if (expected[l] != seen[l]) lanes.push_back(plan.lanes[l].name);
  }
  return lanes;
}

// What the host adds along the measured path, over its length.
double floor_of(const Side& measured, std::span<const Instant> lateness) {
  if (lateness.empty() || measured.steady.time() <= Seconds(0)) return 0;
  Instant late = 0;
  for (const PathSegment& s : measured.path) {
    const bool is_end = s.task && s.to == measured.timeline.end[index(*s.task)];
    if (is_end) late += std::min(s.to - s.from, lateness[index(*s.task)]);
  }
  return to_seconds(late) / measured.steady.time();
}

Verdict verdict_of(const Comparison& c) {
  const std::optional<double> error = c.step.error();
  if (!error || c.floor > c.gate) return Verdict::inconclusive;
  return std::abs(*error) <= c.gate ? Verdict::agrees : Verdict::differs;
}

}  // namespace

const char* name_of(Verdict verdict) {
  constexpr std::array names = {"agrees", "differs", "inconclusive"};
  return names.at(static_cast<std::size_t>(verdict));
}

bool Comparison::same_peaks() const {
  return std::ranges::all_of(pools, [](const PoolPeak& p) { return p.predicted == p.measured; });
}

Comparison compare(const Plan& plan, const Timeline& predicted, const Timeline& measured,
                   std::span<const Demand> demands, std::span<const Resource> resources,
                   const CompareOptions& options) {
  ensure(predicted.end.size() == plan.size() && measured.end.size() == plan.size(),
         "both timelines are of the plan");
  ensure(options.lateness.empty() || options.lateness.size() == plan.size(),
         "lateness is known of all tasks or of none");
  const Side expected(plan, predicted, demands), seen(plan, measured, demands);
  Comparison c;
  c.step = {expected.step(), seen.step()};
  for (std::size_t p = 0; p < phase_count; ++p) c.phases[p] = {expected.phase(p), seen.phase(p)};
  c.kinds = group(plan, expected, seen, [&](const Task& t) { return plan.names[index(t.name)]; });
  c.lanes =
      group(plan, expected, seen, [&](const Task& t) { return plan.lanes[index(t.lane)].name; });
  c.path = paths(plan, expected, seen);
  c.reordered = reordered(plan, predicted, measured);
  c.choices = plan.choices.size();
  for (std::size_t i = 0; i < c.choices; ++i) {
    if (predicted.choices[i] != measured.choices[i]) ++c.other_choices;
  }
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    const Timeline::PoolUse &expected_use = predicted.pools[p], &seen_use = measured.pools[p];
    c.pools.push_back({plan.pools[p].name, expected_use.peak, seen_use.peak,
                       to_seconds(expected_use.peak_at), to_seconds(seen_use.peak_at)});
  }
  if (!c.reordered.empty() || c.other_choices > 0 || !c.same_peaks()) {
    c.flips = find_flips(plan, predicted, measured);
  }
  c.suspects = find_suspects(plan, predicted, measured, demands, resources, options.lateness,
                             seen.path, seen.steady.iterations());
  c.floor = floor_of(seen, options.lateness);
  c.gate = options.gate;
  c.interval = options.interval;
  c.remarks = options.remarks;
  c.verdict = verdict_of(c);
  return c;
}

}  // namespace tidegate
