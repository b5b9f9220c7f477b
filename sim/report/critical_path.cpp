#include "sim/report/critical_path.hpp"

#include <algorithm>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

constexpr TaskId none{0xffffffffu};

bool gives_back(const Effect& given, const Effect& taken) {
  if (given.target != taken.target) return false;
  if (taken.kind == Effect::Kind::lock) return given.kind == Effect::Kind::lock;
  return taken.kind == Effect::Kind::acquire && given.kind == Effect::Kind::release;
}

// Answers what made a task start when it did.
class Causes {
 public:
  Causes(const Plan& plan, const Timeline& timeline, Instant from)
      : plan_(plan), timeline_(timeline), lane_before_(plan.size(), none) {
    std::vector<TaskId> last(plan.lanes.size(), none);
    for (std::size_t t = 0; t < plan.size(); ++t) {
      TaskId& before = last[index(plan.tasks[t].lane)];
      lane_before_[t] = before;
      before = static_cast<TaskId>(t);
      if (timeline.end[t] >= from) by_end_.push_back(before);
    }
    std::ranges::sort(by_end_, {}, [&](TaskId t) { return std::pair(end(t), t); });
  }

  // The task before on the path, or none. The path enters it at min(its end, our start).
  TaskId of(TaskId t) const {
    const TaskId dependence = latest(plan_.after(t));
    if (dependence != none && end(dependence) == start(t)) return dependence;
    const TaskId before = lane_before_[index(t)];
    if (before != none && start(before) == start(t)) return before;
    const TaskId releaser = releaser_of(t);
    if (releaser != none) return releaser;
    if (before == none || end(before) > start(t)) return dependence;
    return dependence == none || end(before) > end(dependence) ? before : dependence;
  }

 private:
  Instant start(TaskId t) const { return timeline_.start[index(t)]; }
  Instant end(TaskId t) const { return timeline_.end[index(t)]; }
  bool has_run(TaskId t) const { return !is_skipped(plan_, t, timeline_); }

  TaskId latest(std::span<const TaskId> tasks) const {
    TaskId best = none;
    for (const TaskId t : tasks) {
      if (best == none || end(t) > end(best)) best = t;
    }
    return best;
  }

  // Of the tasks that ended at our start, one that made room for us, same lane preferred. Tasks
  // without duration count only when they come earlier, so that a walk cannot circle within an
  // instant.
  TaskId releaser_of(TaskId t) const {
    TaskId found = none;
    for (const TaskId y :
         std::ranges::equal_range(by_end_, start(t), {}, [&](TaskId x) { return end(x); })) {
      if (y >= t && start(y) == end(y)) continue;
      if (plan_.task(y).lane == plan_.task(t).lane) return y;
      if (found == none && makes_room(y, t)) found = y;
    }
    return found;
  }

  bool makes_room(TaskId y, TaskId t) const {
    if (!has_run(y) || !has_run(t)) return false;
    for (const Effect& taken : plan_.effects(t)) {
      for (const Effect& given : plan_.effects(y)) {
        if (!holds(taken.when, timeline_) || !holds(given.when, timeline_)) continue;
        if (gives_back(given, taken)) return true;
      }
    }
    return false;
  }

  const Plan& plan_;
  const Timeline& timeline_;
  std::vector<TaskId> lane_before_;
  std::vector<TaskId> by_end_;
};

// Seconds of every resource that the tasks of the plan needed, by resource.
std::vector<double> loads_of(const Plan& plan, const Timeline& timeline,
                             std::span<const Demand> demands) {
  std::vector<double> loads;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    if (is_skipped(plan, TaskId{t}, timeline)) continue;
    const Demand& demand = demands[index(plan.tasks[t].work)];
    for (const Share& share : demand.used()) {
      const std::size_t r = index(share.resource);
      if (r >= loads.size()) loads.resize(r + 1, 0);
      loads[r] += share.fraction * demand.alone.value();
    }
  }
  return loads;
}

// How full resources were while a task ran: the work of all tasks, each spread evenly from its
// start + latency to its end.
class Fullness {
 public:
  Fullness(const Plan& plan, const Timeline& timeline, std::span<const Demand> demands,
           std::size_t resources)
      : rates_(resources) {
    for (std::uint32_t t = 0; t < plan.size(); ++t) {
      if (is_skipped(plan, TaskId{t}, timeline)) continue;
      const Demand& demand = demands[index(plan.tasks[t].work)];
      const Instant from = timeline.start[t] + to_ticks(demand.latency), to = timeline.end[t];
      if (from >= to) continue;
      const double speed = demand.alone / to_seconds(to - from);
      for (const Share& share : demand.used()) {
        auto& rates = rates_[index(share.resource)];
        rates.push_back({from, share.fraction * speed, 0});
        rates.push_back({to, -share.fraction * speed, 0});
      }
    }
    for (std::vector<Rate>& rates : rates_) sum_up(rates);
  }

  double within(ResourceId resource, Instant from, Instant to) const {
    const std::vector<Rate>& rates = rates_[index(resource)];
    return (work(rates, to) - work(rates, from)) / to_seconds(to - from).value();
  }

 private:
  struct Rate {  // from an instant on, and the seconds of work before it
    Instant from;
    double rate, before;
  };
  std::vector<std::vector<Rate>> rates_;  // by resource

  static void sum_up(std::vector<Rate>& rates) {
    std::ranges::sort(rates, {}, &Rate::from);
    double rate = 0, work = 0;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (i > 0) work += rate * to_seconds(rates[i].from - rates[i - 1].from).value();
      rate += rates[i].rate;
      rates[i].rate = rate;
      rates[i].before = work;
    }
  }
  static double work(const std::vector<Rate>& rates, Instant until) {
    const auto after = std::ranges::upper_bound(rates, until, {}, &Rate::from);
    if (after == rates.begin()) return 0;
    const Rate& last = *std::prev(after);
    return last.before + last.rate * to_seconds(until - last.from).value();
  }
};

// assumed: a drive that reads and writes at once is full at about half of its pure rates. Below
// that a resource did not hold a task up that took longer than alone.
constexpr double surely_free = 0.5;
constexpr double stretched = 1.01;  // beyond the rounding of instants

// The resource that a task takes the largest fraction of, of equal ones the most loaded; unless
// that was free while the task ran longer than alone: then the fullest.
std::optional<ResourceId> blamed(const Demand& demand, std::span<const double> loads,
                                 const Fullness& fullness, Instant start, Instant end) {
  const auto used = demand.used();
  if (used.empty()) return std::nullopt;
  const auto weight = [&](const Share& s) {
    return std::pair(s.fraction, loads[index(s.resource)]);
  };
  const ResourceId dominant = std::ranges::max_element(used, {}, weight)->resource;
  const Instant from = start + to_ticks(demand.latency);
  if (from >= end || to_seconds(end - from) < stretched * demand.alone) return dominant;
  const auto full = [&](const Share& s) { return fullness.within(s.resource, from, end); };
  if (fullness.within(dominant, from, end) >= surely_free) return dominant;
  return std::ranges::max_element(used, {}, full)->resource;
}

// Appends the task's time within [from, to], its latency apart.
void blame_task(std::vector<PathSegment>& path, TaskId task, const Demand& demand,
                std::optional<ResourceId> resource, Instant start, Instant from, Instant to) {
  const Instant work_from = resource ? std::clamp(start + to_ticks(demand.latency), from, to) : to;
  if (work_from < to) path.push_back({work_from, to, Blame::resource, *resource, task});
  if (from < work_from) path.push_back({from, work_from, Blame::latency, {}, task});
}

}  // namespace

std::vector<PathSegment> critical_path(const Plan& plan, const Timeline& timeline,
                                       std::span<const Demand> demands, const Steady& steady) {
  std::vector<PathSegment> path;
  const Causes causes(plan, timeline, steady.from);
  const std::vector<double> loads = loads_of(plan, timeline, demands);
  const Fullness fullness(plan, timeline, demands, loads.size());
  Instant now = steady.to;
  TaskId task = steady.last.value_or(none);
  // A lawful timeline ends the walk by itself. Measured clocks that disagree could lead it in a
  // circle.
  for (std::size_t step = 0; now > steady.from && task != none && step < plan.size(); ++step) {
    const Instant start = timeline.start[index(task)];
    const Instant end = std::clamp(timeline.end[index(task)], steady.from, now);
    if (end < now) path.push_back({end, now, Blame::wait, {}, {}});
    now = std::clamp(start, steady.from, end);
    const Demand& demand = demands[index(plan.task(task).work)];
    const auto resource = blamed(demand, loads, fullness, start, timeline.end[index(task)]);
    blame_task(path, task, demand, resource, start, now, end);
    if (now > steady.from) task = causes.of(task);
  }
  if (now > steady.from) path.push_back({steady.from, now, Blame::wait, {}, {}});
  return path;
}

Seconds chain_growth(const Plan& plan, const Timeline& timeline, std::span<const Demand> demands,
                     const Steady& steady) {
  std::vector<double> chain(plan.size(), 0);
  for (std::size_t t = 0; t < plan.size(); ++t) {
    const Demand& demand = demands[index(plan.tasks[t].work)];
    for (const TaskId before : plan.after(static_cast<TaskId>(t))) {
      chain[t] = std::max(chain[t], chain[index(before)]);
    }
    if (is_skipped(plan, static_cast<TaskId>(t), timeline)) continue;
    chain[t] += (demand.latency + demand.alone).value();
  }
  const std::size_t count = steady.first + steady.count;
  std::vector<double> by_iteration(count, 0);
  std::vector<bool> is_marked(count, false);
  for (const Mark& mark : plan.marks) {
    is_marked.at(mark.iteration) = true;
    by_iteration[mark.iteration] = std::max(by_iteration[mark.iteration], chain[index(mark.task)]);
  }
  for (std::size_t t = 0; t < plan.size(); ++t) {
    const std::size_t i = plan.tasks[t].iteration;
    if (!is_marked.at(i)) by_iteration[i] = std::max(by_iteration[i], chain[t]);
  }
  const double before = steady.first == 0 ? 0 : by_iteration[steady.first - 1];
  return Seconds(std::max(0.0, by_iteration[count - 1] - before) / steady.iterations());
}

}  // namespace tidegate
