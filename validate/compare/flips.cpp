#include "validate/compare/flips.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/core.h>

namespace tidegate {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

enum class Moment : std::uint8_t { start, end };

struct Event {
  std::uint32_t task = none;
  Moment moment = Moment::start;

  Instant at(const Timeline& t) const {
    return moment == Moment::start ? t.start[task] : t.end[task];
  }
  std::string text(const Plan& plan) const {
    const Task& t = plan.tasks[task];
    return fmt::format("{} of {} (iteration {}, rank {})",
                       moment == Moment::start ? "start" : "end", plan.label(TaskId{task}),
                       t.iteration, t.rank);
  }
};

/// The two runs of the plan.
struct Runs {
  const Plan& plan;
  const Timeline &predicted, &measured;

  bool ran_in_both(std::uint32_t task) const {
    return !is_skipped(plan, TaskId{task}, predicted) && !is_skipped(plan, TaskId{task}, measured);
  }
  Flip flip(std::string of, Event first, Event second) const {
    const auto margin = [&](const Timeline& t) { return to_seconds(second.at(t) - first.at(t)); };
    return {std::move(of), first.text(plan), second.text(plan), margin(predicted),
            margin(measured)};
  }
};

std::vector<std::uint32_t> deciders(const Plan& plan) {
  std::vector<std::uint32_t> tasks(plan.choices.size(), none);
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    for (const Effect& e : plan.effects(TaskId{t})) {
      if (e.kind == Effect::Kind::decide) tasks[e.target] = t;
    }
  }
  return tasks;
}

void add_choices(std::vector<Flip>& flips, const Runs& runs) {
  const std::vector<std::uint32_t> decides = deciders(runs.plan);
  std::vector<std::pair<Instant, Flip>> found;
  for (std::size_t c = 0; c < decides.size(); ++c) {
    const Choice& choice = runs.plan.choices[c];
    if (runs.predicted.choices[c] == runs.measured.choices[c] || decides[c] == none) continue;
    const auto watched = static_cast<std::uint32_t>(choice.watched);
    if (!runs.ran_in_both(decides[c]) || !runs.ran_in_both(watched)) continue;
    const Event first{watched,
                      choice.rule == Choice::Rule::unfinished ? Moment::end : Moment::start};
    const Event second{decides[c], Moment::start};
    found.emplace_back(second.at(runs.measured), runs.flip("choice", first, second));
  }
  std::ranges::stable_sort(found, {}, &std::pair<Instant, Flip>::first);
  for (auto& [at, flip] : found) flips.push_back(std::move(flip));
}

/// When a buffer comes and goes.
struct Life {
  std::uint32_t from = none, to = none;  ///< tasks
};

std::vector<Life> lives(const Plan& plan, const Timeline& timeline) {
  std::vector<Life> all(plan.buffers.size());
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    if (is_skipped(plan, TaskId{t}, timeline)) continue;
    for (const Effect& e : plan.effects(TaskId{t})) {
      if (!holds(e.when, timeline)) continue;
      if (e.kind == Effect::Kind::allocate) all[e.target].from = t;
      if (e.kind == Effect::Kind::free) all[e.target].to = t;
    }
  }
  return all;
}

// Buffers of the pool that lie in memory at its peak.
std::vector<std::size_t> held_at_peak(const Plan& plan, const Timeline& t, std::size_t pool) {
  const std::vector<Life> life = lives(plan, t);
  const Instant at = t.pools[pool].peak_at;
  std::vector<std::size_t> held;
  for (std::size_t b = 0; b < life.size(); ++b) {
    if (index(plan.buffers[b].pool) != pool || life[b].from == none) continue;
    const bool is_gone = life[b].to != none && t.end[life[b].to] <= at;
    if (t.start[life[b].from] <= at && !is_gone) held.push_back(b);
  }
  return held;
}

// Intervals that all meet in pairs meet all at once: where the peak is lower, a buffer of the
// higher one goes before another comes.
void add_pools(std::vector<Flip>& flips, const Runs& runs) {
  for (std::size_t p = 0; p < runs.plan.pools.size(); ++p) {
    const std::int64_t expected = runs.predicted.pools[p].peak, seen = runs.measured.pools[p].peak;
    if (expected == seen) continue;
    const Timeline& high = expected > seen ? runs.predicted : runs.measured;
    const Timeline& low = expected > seen ? runs.measured : runs.predicted;
    const std::vector<Life> life = lives(runs.plan, low);
    Event freed{none, Moment::end}, allocated{none, Moment::start};
    for (const std::size_t b : held_at_peak(runs.plan, high, p)) {
      if (life[b].from == none) continue;
      const Event comes{life[b].from, Moment::start}, goes{life[b].to, Moment::end};
      if (allocated.task == none || comes.at(low) > allocated.at(low)) allocated = comes;
      if (goes.task == none) continue;
      if (freed.task == none || goes.at(low) < freed.at(low)) freed = goes;
    }
    if (freed.task == none || allocated.task == none || freed.task == allocated.task) continue;
    flips.push_back(runs.flip(runs.plan.pools[p].name, freed, allocated));
  }
}

}  // namespace

std::vector<Flip> find_flips(const Plan& plan, const Timeline& predicted,
                             const Timeline& measured) {
  const Runs runs{plan, predicted, measured};
  std::vector<Flip> flips;
  add_choices(flips, runs);
  add_pools(flips, runs);
  return flips;
}

}  // namespace tidegate
