#include "sim/timeline/laws.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/core.h>

namespace tidegate {
namespace {

// A change of some level at an instant.
struct Step {
  Instant at;
  std::int64_t change;
  std::uint32_t task;
};

// Highest level, when changes at one instant are made with the decreases first (or last).
struct Sweep {
  std::int64_t highest = 0, last = 0;
  std::uint32_t task = 0;
};
Sweep sweep(std::vector<Step> steps, bool decreases_first) {
  std::ranges::sort(steps, [&](const Step& a, const Step& b) {
    if (a.at != b.at) return a.at < b.at;
    if ((a.change < 0) != (b.change < 0)) return (a.change < 0) == decreases_first;
    return a.task < b.task;
  });
  Sweep result;
  for (const Step& step : steps) {
    result.last += step.change;
    if (result.last > result.highest) result.highest = result.last, result.task = step.task;
  }
  return result;
}

class Laws {
 public:
  Laws(const Plan& plan, const Timeline& timeline, std::span<const Demand> demands,
       std::span<const Resource> resources)
      : plan_(plan), timeline_(timeline), demands_(demands), resources_(resources) {}

  std::vector<std::string> broken() {
    if (timeline_.start.size() != plan_.size() || timeline_.end.size() != plan_.size()) {
      return {"the timeline has not one start and end for each task"};
    }
    if (timeline_.choices.size() != plan_.choices.size()) {
      return {"the timeline has not one outcome for each choice"};
    }
    check_tasks();
    check_choices();
    check_lanes();
    check_tokens();
    check_locks();
    check_resources();
    check_buffers();
    check_pools();
    return std::move(broken_);
  }

 private:
  const Plan& plan_;
  const Timeline& timeline_;
  std::span<const Demand> demands_;
  std::span<const Resource> resources_;
  std::vector<std::string> broken_;

  std::string name(std::size_t t) const {
    return fmt::format("task {} '{}'", t, plan_.label(static_cast<TaskId>(t)));
  }
  const Demand& demand(std::size_t t) const { return demands_[index(plan_.tasks[t].work)]; }

  bool is_skipped(std::size_t t) const {
    return tidegate::is_skipped(plan_, static_cast<TaskId>(t), timeline_);
  }

  void check_tasks() {
    Instant last = 0;
    for (std::size_t t = 0; t < plan_.size(); ++t) {
      const Instant start = timeline_.start[t], end = timeline_.end[t];
      last = std::max(last, end);
      for (const TaskId before : plan_.after(static_cast<TaskId>(t))) {
        if (start >= timeline_.end[index(before)]) continue;
        broken_.push_back(name(t) + " starts before the end of " + name(index(before)));
      }
      if (is_skipped(t)) {
        if (start != end) broken_.push_back(name(t) + " is skipped and takes time");
        continue;
      }
      const double least = (demand(t).latency + demand(t).alone).value() * ticks_per_second;
      if (start < 0 || static_cast<double>(end - start) < least * (1 - 1e-12) - 2) {
        broken_.push_back(name(t) + " takes less than its time alone");
      }
    }
    if (last != timeline_.makespan) broken_.push_back("the makespan is not the last end");
  }

  // Within an instant, the order of starts and ends is the executor's.
  void check_choices() {
    std::vector<bool> is_taken(plan_.choices.size());
    each_effect([&](std::uint32_t t, const Effect& e) {
      if (e.kind != Effect::Kind::decide) return;
      is_taken[e.target] = true;
      const auto [watched, rule] = plan_.choices[e.target];
      const std::size_t w = index(watched);
      const bool by_end = rule == Choice::Rule::unfinished;
      const Instant seen = by_end ? timeline_.end[w] : timeline_.start[w];
      const bool is_yes = timeline_.choices[e.target] != 0;
      if (is_yes ? seen >= timeline_.start[t] : seen <= timeline_.start[t]) return;
      broken_.push_back(fmt::format("choice {} is {}, but {} {} {} {} decides it", e.target,
                                    is_yes ? "yes" : "no", name(w), by_end ? "ends" : "starts",
                                    is_yes ? "before" : "after", name(t)));
    });
    for (std::size_t c = 0; c < is_taken.size(); ++c) {
      if (is_taken[c] || timeline_.choices[c] == 0) continue;
      broken_.push_back(fmt::format("choice {} is yes, but no task decides it", c));
    }
  }

  void check_lanes() {
    std::vector<std::vector<Step>> running(plan_.lanes.size());
    std::vector<Instant> last(plan_.lanes.size(), 0);
    for (std::uint32_t t = 0; t < plan_.size(); ++t) {
      const std::size_t lane = index(plan_.tasks[t].lane);
      const Instant start = timeline_.start[t], end = timeline_.end[t];
      if (start < last[lane]) broken_.push_back(name(t) + " overtakes an earlier task of its lane");
      last[lane] = start;
      if (start == end) continue;
      running[lane].push_back({start, 1, t});
      running[lane].push_back({end, -1, t});
    }
    for (std::size_t l = 0; l < running.size(); ++l) {
      const Sweep seen = sweep(std::move(running[l]), true);
      if (seen.highest <= plan_.lanes[l].width) continue;
      broken_.push_back(name(seen.task) + " exceeds the width of lane " + plan_.lanes[l].name);
    }
  }

  // The effects that happened.
  template <class Visit>
  void each_effect(Visit&& visit) const {
    for (std::uint32_t t = 0; t < plan_.size(); ++t) {
      if (is_skipped(t)) continue;
      for (const Effect& effect : plan_.effects(static_cast<TaskId>(t))) {
        if (holds(effect.when, timeline_)) visit(t, effect);
      }
    }
  }

  void check_tokens() {
    std::vector<std::vector<Step>> taken(plan_.tokens.size());
    each_effect([&](std::uint32_t t, const Effect& e) {
      if (e.kind == Effect::Kind::acquire) {
        taken[e.target].push_back({timeline_.start[t], e.count, t});
      } else if (e.kind == Effect::Kind::release) {
        taken[e.target].push_back({timeline_.end[t], -std::int64_t{e.count}, t});
      }
    });
    for (std::size_t p = 0; p < taken.size(); ++p) {
      const Sweep seen = sweep(std::move(taken[p]), true);
      if (seen.highest <= plan_.tokens[p].count) continue;
      broken_.push_back(name(seen.task) + " takes more tokens than exist of " +
                        plan_.tokens[p].name);
    }
  }

  void check_locks() {
    std::vector<std::vector<std::uint32_t>> holders(plan_.locks.size());
    each_effect([&](std::uint32_t t, const Effect& e) {
      const bool lasts = timeline_.start[t] < timeline_.end[t];
      if (e.kind == Effect::Kind::lock && lasts) holders[e.target].push_back(t);
    });
    for (std::vector<std::uint32_t>& tasks : holders) {
      std::ranges::sort(tasks, {}, [this](std::uint32_t t) { return timeline_.start[t]; });
      Instant held_until = 0;
      std::uint16_t rank = 0;
      for (const std::uint32_t t : tasks) {
        if (plan_.tasks[t].rank != rank && timeline_.start[t] < held_until) {
          broken_.push_back(name(t) + " takes a lock that another rank holds");
        }
        const bool is_joining = plan_.tasks[t].rank == rank && timeline_.start[t] < held_until;
        held_until = is_joining ? std::max(held_until, timeline_.end[t]) : timeline_.end[t];
        rank = plan_.tasks[t].rank;
      }
    }
  }

  void check_resources() {
    std::vector<double> work(resources_.size());
    for (std::size_t t = 0; t < plan_.size(); ++t) {
      if (is_skipped(t)) continue;
      for (const Share& s : demand(t).used()) {
        const Resource& r = resources_[index(s.resource)];
        double cost = std::min(1.0, r.mixed_cost[s.side]);
        if (s.side == 1) cost *= std::min(1.0, r.tired_cost);
        work[index(s.resource)] += demand(t).alone.value() * s.fraction * cost;
      }
    }
    const double most = to_seconds(timeline_.makespan).value();
    const double rounding = 1e-9 * most + 2e-12 * static_cast<double>(plan_.size());
    for (std::size_t r = 0; r < work.size(); ++r) {
      if (work[r] <= most + rounding) continue;
      broken_.push_back(fmt::format("resource {} does {} s of work in {} s", r, work[r], most));
    }
  }

  void check_buffers() {
    std::vector<Instant> allocated(plan_.buffers.size(), -1), freed(plan_.buffers.size(), -1);
    each_effect([&](std::uint32_t t, const Effect& e) {
      const bool frees = e.kind == Effect::Kind::free;
      if (e.kind != Effect::Kind::allocate && !frees) return;
      Instant& once = (frees ? freed : allocated)[e.target];
      if (once >= 0) {
        broken_.push_back(
            fmt::format("{} {} buffer {} again", name(t), frees ? "frees" : "allocates", e.target));
      }
      once = frees ? timeline_.end[t] : timeline_.start[t];
    });
    for (std::size_t b = 0; b < freed.size(); ++b) {
      if (freed[b] < allocated[b] || (allocated[b] < 0 && freed[b] >= 0)) {
        broken_.push_back(fmt::format("buffer {} is not freed after its allocation", b));
      }
    }
  }

  void check_pools() {
    std::vector<std::vector<Step>> steps(plan_.pools.size());
    bool is_instant_free = false;  // then the order within an instant is the engine's
    each_effect([&](std::uint32_t t, const Effect& e) {
      const bool frees = e.kind == Effect::Kind::free;
      if (e.kind != Effect::Kind::allocate && !frees) return;
      const Buffer& buffer = plan_.buffers[e.target];
      const std::int64_t change = frees ? -buffer.bytes : buffer.bytes;
      const Instant at = frees ? timeline_.end[t] : timeline_.start[t];
      is_instant_free |= frees && timeline_.start[t] == timeline_.end[t];
      steps[index(buffer.pool)].push_back({at, change, t});
    });
    if (timeline_.pools.size() != steps.size()) {
      broken_.push_back("the timeline has not one entry for each pool");
      return;
    }
    for (std::size_t p = 0; p < steps.size(); ++p) {
      const std::int64_t peak = timeline_.pools[p].peak;
      const Sweep low = sweep(steps[p], true);
      const Sweep high = is_instant_free ? sweep(steps[p], false) : low;
      if (peak < low.highest || peak > high.highest) {
        broken_.push_back(fmt::format("pool {} peaks at {} bytes, not {}", plan_.pools[p].name,
                                      low.highest, peak));
      }
    }
  }
};

}  // namespace

std::vector<std::string> broken_laws(const Plan& plan, const Timeline& timeline,
                                     std::span<const Demand> demands,
                                     std::span<const Resource> resources) {
  return Laws(plan, timeline, demands, resources).broken();
}

}  // namespace tidegate
