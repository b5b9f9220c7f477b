#include "sim/run/fixes.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <tuple>

#include "models/base/error.hpp"
#include "sim/run/changes.hpp"
#include "sim/run/overfull.hpp"

namespace tidegate {
namespace {

double filling(Bytes peak, Bytes capacity) {
  return std::isfinite(capacity.value()) ? peak / capacity : 0;
}

using Needs = std::vector<Report::Fix::Pool>;

// What a run needs of each pool.
Needs needs_of(const Report& report) {
  Needs needs;
  for (const Report::Pool& pool : report.pools) {
    needs.push_back({pool.name, needed_of(report, pool), pool.capacity, pool.count});
  }
  return needs;
}

// The most that a pool of this kind needs: what is simulated of the GPUs depends on the policy, and
// so do the storage paths in use.
Bytes need_of(const Needs& needs, const std::string& pool) {
  const auto is_gpu = [](const std::string& name) { return name.starts_with("gpu"); };
  Bytes most;
  for (const Report::Fix::Pool& p : needs) {
    if (p.name == pool || (is_gpu(p.name) && is_gpu(pool))) most = std::max(most, p.peak);
  }
  return most;
}

// A change that was simulated.
struct Trial {
  Change change;
  Report::Fix fix;
  Needs needs;
  bool is_fitting = false;

  double fullest() const {
    double most = 0;
    for (const Report::Fix::Pool& p : needs) most = std::max(most, filling(p.peak, p.capacity));
    return most;
  }
  auto rank() const { return std::tuple(change.sets.size(), fix.slow_down); }
};

class Search {
 public:
  Search(const ScenarioSource& source, const std::vector<Override>& overrides,
         const Prediction& base, const FixSearch& search)
      : source_(source), overrides_(overrides), base_(base), search_(search) {}

  std::int32_t tried() const { return tried_; }
  const std::vector<Trial>& trials() const { return trials_; }
  std::size_t fitting() const {
    return static_cast<std::size_t>(std::ranges::count_if(trials_, &Trial::is_fitting));
  }

  /// Simulates a change while fewer than `most` were. Leaves out what is refused or would change
  /// the batch.
  void attempt(const Change& change, std::int32_t most) {
    if (tried_ >= most || accepted_.contains(change.instead_of)) return;
    std::vector<Override> overrides = overrides_;
    overrides.insert(overrides.end(), change.sets.begin(), change.sets.end());
    try {
      Scenario scenario = load_scenario(source_, overrides);
      if (!change.instead_of.empty()) accepted_.insert(change.instead_of);
      if (search_.progress) search_.progress(tried_);
      ++tried_;
      const Report report = predict(scenario).report;
      const Report& before = base_.report;
      if (report.facts.tokens_per_iteration != before.facts.tokens_per_iteration) return;
      trials_.push_back({change, fix_of(change, report), needs_of(report), report.fits});
    } catch (const InputError&) {
      return;
    }
  }

 private:
  Report::Fix fix_of(const Change& change, const Report& report) const {
    Report::Fix fix{.what = describe(change),
                    .sets = {},
                    .iteration_time = report.iteration_time,
                    .tokens_per_second = report.tokens_per_second,
                    .slow_down = report.iteration_time / base_.report.iteration_time,
                    .pools = {}};
    for (const auto& [key, text] : change.sets) fix.sets.push_back(key + "=" + text);
    const Needs before = needs_of(base_.report);
    for (const Report::Fix::Pool& now : needs_of(report)) {
      if (std::max(need_of(before, now.name), now.peak) > now.capacity) fix.pools.push_back(now);
    }
    return fix;
  }

  const ScenarioSource& source_;
  const std::vector<Override>& overrides_;
  const Prediction& base_;
  const FixSearch& search_;
  std::int32_t tried_ = 0;
  std::set<std::string> accepted_;
  std::vector<Trial> trials_;
};

// Two changes in one, and what they let expect: needs that add up, times that multiply.
struct Pair {
  Change change;
  double fullest = 0;
  double slow_down = 1;
  bool fits() const { return fullest <= 1; }
};

bool comes_first(const Pair& a, const Pair& b) {
  if (a.fits() != b.fits()) return a.fits();
  if (!a.fits()) return a.fullest < b.fullest;
  return std::tuple(a.change.sets.size(), a.slow_down) <
         std::tuple(b.change.sets.size(), b.slow_down);
}

// Adds the pair to the list, unless one of them fits alone or they do not go together.
void pair_up(const Trial& a, const Trial& b, const Needs& base, std::vector<Pair>& pairs) {
  const auto change = both(a.change, b.change);
  if (!change || a.is_fitting || b.is_fitting || change->sets == a.change.sets) return;
  Pair pair{.change = *change, .slow_down = a.fix.slow_down * b.fix.slow_down};
  for (std::size_t p = 0; p < base.size(); ++p) {
    const Bytes peak = a.needs[p].peak + b.needs[p].peak - base[p].peak;
    pair.fullest = std::max(pair.fullest, filling(peak, base[p].capacity));
  }
  pairs.push_back(std::move(pair));
}

std::vector<Pair> pairs_of(std::span<const Trial> trials, const Needs& base) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    for (std::size_t k = i + 1; k < trials.size(); ++k) pair_up(trials[i], trials[k], base, pairs);
  }
  std::ranges::stable_sort(pairs, comes_first);
  return pairs;
}

std::vector<Pair> pairs_with(const Trial& one, std::span<const Trial> trials, const Needs& base) {
  std::vector<Pair> pairs;
  for (const Trial& trial : trials) pair_up(one, trial, base, pairs);
  std::ranges::stable_sort(pairs, comes_first);
  return pairs;
}

const Trial& nearest_of(const std::vector<Trial>& trials) {
  return *std::ranges::min_element(
      trials, {}, [](const Trial& t) { return std::tuple(t.fullest(), t.rank()); });
}

bool contains(const Change& whole, const Change& part) {
  return std::ranges::all_of(part.sets, [&](const Override& set) {
    return std::ranges::find(whole.sets, set) != whole.sets.end();
  });
}

// The smallest that fit, different keys first.
std::vector<const Trial*> smallest(const std::vector<Trial>& trials, std::size_t wanted) {
  std::vector<const Trial*> fitting;
  for (const Trial& t : trials) {
    if (t.is_fitting) fitting.push_back(&t);
  }
  std::ranges::stable_sort(fitting, {}, &Trial::rank);
  std::vector<const Trial*> first, rest;
  std::set<std::set<std::string>> seen;
  for (std::size_t i = 0; i < fitting.size(); ++i) {
    const Change& change = fitting[i]->change;
    const auto is_part = [&](const Trial* t) { return contains(change, t->change); };
    if (std::any_of(fitting.begin(), fitting.begin() + static_cast<std::ptrdiff_t>(i), is_part))
      continue;
    std::set<std::string> keys;
    for (const auto& [key, text] : change.sets) keys.insert(key);
    (seen.insert(keys).second ? first : rest).push_back(fitting[i]);
  }
  first.insert(first.end(), rest.begin(), rest.end());
  first.resize(std::min(first.size(), wanted));
  std::ranges::stable_sort(first, {}, &Trial::rank);
  return first;
}

}  // namespace

Report::Fixes find_fixes(const std::string& path, const std::vector<Override>& overrides,
                         const Prediction& base, const FixSearch& search) {
  return find_fixes(scenario_source(path), overrides, base, search);
}

Report::Fixes find_fixes(const ScenarioSource& source, const std::vector<Override>& overrides,
                         const Prediction& base, const FixSearch& search) {
  const Scenario scenario = load_scenario(source, overrides);
  std::vector<Change> changes = changes_for(base, scenario, scenario_values(source, overrides));
  std::ranges::stable_sort(changes, {}, [](const Change& c) { return c.sets.size(); });
  Search run(source, overrides, base, search);
  for (const Change& change : changes) run.attempt(change, search.most_simulations);
  const std::vector<Trial> singles = run.trials();
  const Needs needs = needs_of(base.report);
  // A quarter is kept for a third change beside the best two.
  const std::int32_t most_for_pairs = search.most_simulations - search.most_simulations / 4;
  for (const Pair& pair : pairs_of(singles, needs)) {
    if (run.fitting() < search.wanted) run.attempt(pair.change, most_for_pairs);
  }
  if (run.fitting() == 0 && !singles.empty()) {
    const Trial nearest = nearest_of(run.trials());
    for (const Pair& pair : pairs_with(nearest, singles, needs)) {
      if (run.fitting() < search.wanted) run.attempt(pair.change, search.most_simulations);
    }
  }
  Report::Fixes fixes{.tried = run.tried()};
  for (const Trial* t : smallest(run.trials(), search.wanted)) fixes.found.push_back(t->fix);
  if (fixes.found.empty() && !run.trials().empty()) fixes.nearest = nearest_of(run.trials()).fix;
  return fixes;
}

}  // namespace tidegate
