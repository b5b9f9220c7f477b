#include "sim/planner/compare.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

#include "sim/planner/front.hpp"
#include "sim/run/predict.hpp"

namespace tidegate::planner {
namespace {

using State = Assessment::State;

constexpr double day = 86400;

// What a day of training costs at least: nothing is busy, no drive wears.
Money least_rate(const Catalog& catalog, const Build& build) {
  return costs_of(bill_of(catalog, build), catalog.terms, {}, Seconds(day)).total();
}

bool keeps_budget(const Comparison& c, const Assessment& a) {
  return !c.budget || a.costs.outlay() <= *c.budget;
}

bool keeps_all(const Comparison& c, const Assessment& a) {
  return a.is_trained() && keeps_budget(c, a) && (!c.days || a.days() <= *c.days);
}

// Iteration time from which on a machine of this price is behind what is known.
Seconds enough_for(const Comparison& c, Money rate) {
  std::vector<Point> points;
  for (const Assessment& a : c.machines) {
    if (a.is_trained() && keeps_budget(c, a)) points.push_back({a.days(), a.costs.total()});
  }
  return Seconds(behind_from(points, rate) * day * c.tokens_per_iteration / c.tokens);
}

// Each once.
std::vector<std::vector<Override>> known_policies(const Comparison& c) {
  std::vector<std::vector<Override>> known;
  for (const Assessment& a : c.machines) {
    if (!a.is_trained()) continue;
    std::vector<Override> policy = policy_of(a.sets);
    if (std::ranges::find(known, policy) == known.end()) known.push_back(std::move(policy));
  }
  return known;
}

Assessment one(const Catalog& catalog, const Job& job, const CompareOptions& options,
               const Comparison& so_far, const Build& build) {
  const Bill bill = bill_of(catalog, build);
  if (build.refusal.empty() && options.budget && bill.purchase() > *options.budget) {
    return {.build = build,
            .bill = bill,
            .state = State::over_budget,
            .reason = fmt::format("its purchase takes {:.0f} {}, more than the budget",
                                  bill.purchase(), catalog.currency)};
  }
  AssessOptions mine = options.assess;
  mine.known = known_policies(so_far);
  if (!options.simulates_all) mine.enough = enough_for(so_far, least_rate(catalog, build));
  return assess(catalog, build, job, mine);
}

// Times (and so costs) of nine in ten machines; a prediction without an interval is one value.
std::pair<double, double> relative_range(const Assessment& a) {
  if (!a.range) return {1, 1};
  return {a.range->low / a.iteration_time, a.range->high / a.iteration_time};
}

bool is_alike(const Assessment& a, double mine, const Assessment& b, double other, double margin) {
  if (std::abs(other - mine) <= margin * mine) return true;
  const auto [low_a, high_a] = relative_range(a);
  const auto [low_b, high_b] = relative_range(b);
  return mine * low_a <= other * high_b && other * low_b <= mine * high_a;
}

// What the answer is chosen by, less is better.
double aim(const Comparison& c, const Assessment& a) {
  return c.budget && !c.days ? a.days() : a.costs.total();
}

void choose(Comparison& c) {
  c.answer.reset(), c.alike.clear();
  for (std::size_t i = 0; i < c.machines.size(); ++i) {
    if (!keeps_all(c, c.machines[i])) continue;
    if (!c.answer || aim(c, c.machines[i]) < aim(c, c.machines[*c.answer])) c.answer = i;
  }
  if (!c.answer) return;
  const Assessment& best = c.machines[*c.answer];
  for (std::size_t i = 0; i < c.machines.size(); ++i) {
    const Assessment& a = c.machines[i];
    if (i != *c.answer && keeps_all(c, a) && is_alike(best, aim(c, best), a, aim(c, a), c.margin))
      c.alike.push_back(i);
  }
}

std::string upgrade_text(const Build& from, const Build& to, std::size_t dimension) {
  switch (dimension) {
    case 0:
      return fmt::format("{} -> {} nodes", from.nodes, to.nodes);
    case 1:
      return fmt::format("{} -> {} GPUs a node", from.gpus, to.gpus);
    case 2:
      return fmt::format("{} -> {} drives a node", from.drives, to.drives);
    default:
      return to_text(from.memory) + " -> " + to_text(to.memory) + " a node";
  }
}

// The dimension in which `to` is the next machine after `from`.
std::optional<std::size_t> next_in(const Build& from, const Build& to) {
  if (from.entry != to.entry) return std::nullopt;
  std::optional<std::size_t> dimension;
  for (std::size_t d = 0; d < from.at.size(); ++d) {
    if (from.at[d] == to.at[d]) continue;
    if (dimension || to.at[d] != from.at[d] + 1) return std::nullopt;
    dimension = d;
  }
  return dimension;
}

void add_upgrades(Comparison& c) {
  c.upgrades.clear();
  for (std::size_t i = 0; i < c.machines.size(); ++i) {
    for (std::size_t j = 0; j < c.machines.size(); ++j) {
      const Assessment &from = c.machines[i], &to = c.machines[j];
      const auto dimension = next_in(from.build, to.build);
      if (!dimension || !from.is_trained() || !to.is_trained() || from.bill.rent) continue;
      Upgrade step{.from = i,
                   .to = j,
                   .what = upgrade_text(from.build, to.build, *dimension),
                   .gain = to.tokens_per_second - from.tokens_per_second,
                   .price = to.bill.purchase() - from.bill.purchase(),
                   .days = from.days() - to.days()};
      if (step.price > 0) step.per_thousand = step.gain / step.price * 1000;
      c.upgrades.push_back(std::move(step));
    }
  }
  std::ranges::stable_sort(c.upgrades, std::greater{},
                           [](const Upgrade& s) { return s.per_thousand.value_or(0); });
}

void choose_front(Comparison& c) {
  const std::vector<std::size_t> trained = c.trained();
  std::vector<Point> points;
  for (const std::size_t i : trained)
    points.push_back({c.machines[i].days(), c.machines[i].costs.total()});
  c.front.clear();
  for (const std::size_t i : front_of(points)) c.front.push_back(trained[i]);
}

}  // namespace

std::vector<std::size_t> Comparison::trained() const {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    if (machines[i].is_trained()) all.push_back(i);
  }
  return all;
}

void rank(Comparison& c) {
  choose_front(c);
  choose(c);
  add_upgrades(c);
}

Comparison compare_machines(const Catalog& catalog, const Job& job, const CompareOptions& options) {
  const std::vector<Build> builds = builds_of(catalog);
  Comparison c{.catalog = catalog.name,
               .date = catalog.date,
               .currency = catalog.currency,
               .scenario = job.name,
               .revision = revision(),
               .is_example = catalog.is_example,
               .terms = catalog.terms,
               .tokens = job.tokens,
               .tokens_per_iteration = job.tokens_per_iteration(),
               .sequences = job.sequences,
               .days = options.days,
               .budget = options.budget,
               .margin = options.assess.margin,
               .sources = catalog.provenance};
  for (const Build& build : builds)
    c.machines.push_back(
        {.build = build, .bill = bill_of(catalog, build), .reason = "interrupted"});
  std::vector<std::size_t> order(builds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](std::size_t i) { return least_rate(catalog, builds[i]); });
  std::size_t done = 0;
  for (const std::size_t i : order) {
    if (options.assess.is_stopped()) break;
    options.progress(done++, builds.size(), builds[i].name);
    c.machines[i] = one(catalog, job, options, c, builds[i]);
  }
  c.is_interrupted = options.assess.is_stopped();
  rank(c);
  return c;
}

}  // namespace tidegate::planner
