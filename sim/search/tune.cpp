#include "sim/search/tune.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/search/corners.hpp"
#include "sim/search/limits.hpp"
#include "sim/search/pool.hpp"

namespace tidegate {
namespace {

// Candidates simulated before the next are chosen, or a part of those that were simulated before if
// that is more: the same for any number of threads, few while little is known, and enough for many
// threads later.
constexpr std::size_t least_batch = 16;
constexpr std::size_t part_of_simulated = 4;
// Starting points that are refined, and how often at most.
constexpr std::size_t most_starts = 4;
constexpr int most_steps = 8;

class Search {
 public:
  Search(Evaluators& evaluators, const Space& space, const TuneOptions& options, ResultsLog* log)
      : space_(space), options_(options), pool_(evaluators, space, options, log) {}

  Tuning run() {
    simulate_today();
    pool_.screen(space_.crossed_picks());
    choose_starts();
    require_one();
    if (options_.simulates_all) {
      simulate_all();
    } else {
      simulate_by_bound(options_.most_simulations / 2);
      refine();
      transfer();
      simulate_by_bound(options_.most_simulations);
    }
    return result();
  }

 private:
  // One combination of the crossed axes.
  struct Group {
    Picks crossed;
    Picks start;  // refined where that is needed to fit
    enum class State { refused, over_limits, cannot_fit, open } state = State::open;
  };

  bool is_over() const { return options_.is_stopped(); }
  bool has_room(std::size_t most) const { return pool_.simulated() < most && !is_over(); }
  Seconds best_time() const {
    const Candidate* best = pool_.best();
    return best != nullptr ? best->trial->iteration_time
                           : Seconds(std::numeric_limits<double>::infinity());
  }
  bool may_win(const Candidate& c) const {
    return c.screening.refusal.empty() && c.screening.bound.may_fit() &&
           c.screening.bound.time < best_time() && pool_.allows_changes(c.picks);
  }

  void choose_starts() {
    for (const Picks& picks : space_.crossed_picks()) {
      Group group{.crossed = picks, .start = picks};
      const Candidate* c = pool_.find(picks);
      if (c == nullptr) return;  // stopped while screening
      if (!c->screening.refusal.empty()) {
        group.state = Group::State::refused;
      } else if (!pool_.allows_changes(picks)) {
        group.state = Group::State::over_limits;
      } else if (!c->screening.bound.may_fit()) {
        if (cannot_fit(pool_, space_, picks)) {
          group.state = Group::State::cannot_fit;
        } else {
          group.start = leaner(pool_, space_, picks);
        }
      }
      groups_.push_back(std::move(group));
      if (is_over()) return;
    }
  }

  // An unknown key, or a value that no combination takes, is a fault of who asked.
  void require_one() const {
    const auto is_refused = [](const Group& g) { return g.state == Group::State::refused; };
    if (groups_.empty() || !std::ranges::all_of(groups_, is_refused)) return;
    throw InputError(fmt::format("no combination is a configuration; the first: {}",
                                 pool_.find(groups_.front().crossed)->screening.refusal));
  }

  void simulate_today() {
    if (!options_.simulates_all) pool_.simulate({space_.today()}, "today");
  }

  std::size_t batch() const { return std::max(least_batch, pool_.simulated() / part_of_simulated); }

  // In batches, as long as there is room.
  void simulate_in_batches(const std::vector<Picks>& list, const char* doing,
                           std::size_t expected) {
    for (std::size_t from = 0; from < list.size() && has_room(options_.most_simulations);) {
      const std::size_t end = std::min(from + batch(), list.size());
      pool_.simulate({list.begin() + static_cast<std::ptrdiff_t>(from),
                      list.begin() + static_cast<std::ptrdiff_t>(end)},
                     doing, expected);
      from = end;
    }
  }

  void simulate_all() {
    std::vector<Picks> all;
    for (const Group& g : groups_) {
      if (g.state != Group::State::refused && pool_.allows_changes(g.crossed))
        all.push_back(g.crossed);
    }
    simulate_in_batches(all, "grid", all.size());
  }

  // Starts that are not simulated and may still win, the least bound first.
  std::vector<Picks> open_starts() const {
    std::vector<std::pair<Seconds, Picks>> open;
    for (const Group& g : groups_) {
      if (g.state != Group::State::open) continue;
      const Candidate* c = pool_.find(g.start);
      if (c != nullptr && !c->trial && may_win(*c))
        open.emplace_back(c->screening.bound.time, g.start);
    }
    std::ranges::sort(open);
    std::vector<Picks> picks;
    for (auto& [time, start] : open) picks.push_back(std::move(start));
    return picks;
  }

  void simulate_by_bound(std::size_t most) {
    while (has_room(most)) {
      std::vector<Picks> next = open_starts();
      const std::size_t all = next.size();
      next.resize(std::min({all, batch(), most - pool_.simulated()}));
      if (next.empty()) return;
      pool_.simulate(next, "choices", std::min(most, pool_.simulated() + all));
    }
  }

  // One option of one refined axis changed.
  std::vector<Picks> neighbours(const Picks& of) const {
    std::vector<Picks> all;
    for (std::size_t a = space_.crossed; a < space_.axes.size(); ++a) {
      if (!space_.applies(a, of)) continue;
      for (std::uint16_t o = 0; o < space_.axes[a].options.size(); ++o) {
        if (o == of[a]) continue;
        all.push_back(of);
        all.back()[a] = o;
      }
    }
    return all;
  }

  // Simulates those of `picks` that may be faster than `than`, or may fit when it does not.
  void simulate_promising(const std::vector<Picks>& picks, const Candidate& than) {
    pool_.screen(picks);
    std::vector<Picks> next;
    for (const Picks& p : picks) {
      const Candidate* c = pool_.find(p);
      if (c == nullptr || c->trial || !may_win(*c)) continue;
      const bool is_faster = c->screening.bound.time < than.trial->iteration_time;
      if (is_faster || !than.is_acceptable()) next.push_back(p);
    }
    simulate_in_batches(next, "refinements", options_.most_simulations);
  }

  const Candidate* better_of(const std::vector<Picks>& picks, const Candidate* now) const {
    for (const Picks& p : picks) {
      const Candidate* c = pool_.find(p);
      if (c != nullptr && c->trial && comes_before(*c, *now)) now = c;
    }
    return now;
  }

  // The best of what was simulated, each of another combination of the crossed axes; and of those
  // that do not fit the fastest, which a refinement may make fit.
  std::vector<Picks> starts() const {
    std::vector<const Candidate*> list;
    for (const auto& [picks, c] : pool_.all()) {
      if (c.trial && c.violates.empty()) list.push_back(&c);
    }
    std::ranges::stable_sort(list,
                             [](const auto* a, const auto* b) { return comes_before(*a, *b); });
    std::set<Picks> seen;
    std::vector<Picks> picks;
    std::size_t failing = 0;
    for (const Candidate* c : list) {
      const Picks crossed(c->picks.begin(),
                          c->picks.begin() + static_cast<std::ptrdiff_t>(space_.crossed));
      if (picks.size() - failing >= most_starts && c->is_acceptable()) continue;
      if (!c->is_acceptable() && (failing >= most_starts || !may_win(*c))) continue;
      if (!seen.insert(crossed).second) continue;
      failing += c->is_acceptable() ? 0U : 1U;
      picks.push_back(c->picks);
    }
    return picks;
  }

  void refine() {
    if (space_.crossed == space_.axes.size()) return;
    for (const Picks& start : starts()) {
      const Candidate* now = pool_.find(start);
      for (int step = 0; step < most_steps && has_room(options_.most_simulations); ++step) {
        const std::vector<Picks> next = neighbours(now->picks);
        simulate_promising(next, *now);
        const Candidate* better = better_of(next, now);
        if (better == now) break;
        now = better;
      }
    }
  }

  // What was refined for the best, tried on the other combinations.
  void transfer() {
    const Candidate* best = pool_.best();
    if (best == nullptr || space_.crossed == space_.axes.size()) return;
    const Candidate model = *best;
    std::vector<Picks> picks;
    for (const Group& g : groups_) {
      if (g.state != Group::State::open) continue;
      Picks mine(model.picks);
      std::ranges::copy(g.crossed.begin(),
                        g.crossed.begin() + static_cast<std::ptrdiff_t>(space_.crossed),
                        mine.begin());
      for (std::size_t a = space_.crossed; a < mine.size(); ++a) {
        if (!space_.applies(a, mine)) mine[a] = 0;
      }
      picks.push_back(std::move(mine));
    }
    simulate_promising(picks, model);
    const Candidate* now = pool_.best();
    for (int step = 0; step < most_steps && has_room(options_.most_simulations); ++step) {
      const std::vector<Picks> next = neighbours(now->picks);
      simulate_promising(next, *now);
      const Candidate* better = better_of(next, now);
      if (better == now) break;
      now = better;
    }
  }

  // The same without one change; what that change was a condition of goes with it.
  Picks without(const Picks& of, std::size_t axis) const {
    Picks fewer(of);
    fewer[axis] = 0;
    for (std::size_t b = 0; b < fewer.size(); ++b) {
      if (!space_.applies(b, fewer)) fewer[b] = 0;
    }
    return fewer;
  }

  // Simulated, with a time within the margin of the best.
  const Candidate* within(const Picks& picks, Seconds most) const {
    const Candidate* c = pool_.find(picks);
    const bool is_near = c != nullptr && c->is_acceptable() && c->trial->iteration_time <= most;
    return is_near ? c : nullptr;
  }

  // Each change is taken back alone, which tells what it is worth. Those that are worth less than
  // the margin are then taken back together, the idlest first, as long as the time stays within it.
  std::optional<Candidate> simplest() {
    const Candidate* best = pool_.best();
    if (best == nullptr) return std::nullopt;
    const Seconds most = best->trial->iteration_time * (1 + options_.margin);
    std::vector<std::size_t> changed;
    std::vector<Picks> alone;
    for (std::size_t a = 0; a < space_.axes.size(); ++a) {
      const std::vector<Option>& options = space_.axes[a].options;
      if (options[best->picks[a]].is_today || !options[0].is_today) continue;
      changed.push_back(a);
      alone.push_back(without(best->picks, a));
    }
    pool_.simulate(alone, "what is worth it");
    std::vector<std::pair<Seconds, std::size_t>> idle;
    for (std::size_t i = 0; i < changed.size(); ++i) {
      if (const Candidate* c = within(alone[i], most))
        idle.emplace_back(c->trial->iteration_time, changed[i]);
    }
    std::ranges::stable_sort(idle);
    const Candidate* now = best;
    for (const auto& [time, axis] : idle) {
      if (is_over()) break;
      const Picks fewer = without(now->picks, axis);
      pool_.simulate({fewer}, "what is worth it");
      if (const Candidate* c = within(fewer, most)) now = c;
    }
    return *now;
  }

  std::vector<Tuning::Effect> effects(const Candidate& best) const {
    std::vector<Tuning::Effect> list;
    for (std::size_t a = 0; a < space_.axes.size(); ++a) {
      const bool is_changed = !space_.axes[a].options[best.picks[a]].is_today;
      const Candidate* other = nullptr;
      for (std::uint16_t o = 0; o < space_.axes[a].options.size(); ++o) {
        // Of a change, what it gains against today; of no change, what the best other would do.
        if (o == best.picks[a] || (is_changed && !space_.axes[a].options[o].is_today)) continue;
        Picks picks(best.picks);
        picks[a] = o;
        const Candidate* c = pool_.find(is_changed ? without(best.picks, a) : picks);
        const bool is_known = c != nullptr && (c->trial || is_changed);
        if (is_known && (other == nullptr || (c->trial && comes_before(*c, *other)))) other = c;
      }
      if (other == nullptr) continue;
      Tuning::Effect effect{.axis = space_.axes[a].name,
                            .sets = is_changed ? "as it is" : words_of(a, other->picks[a]),
                            .change = 0,
                            .is_changed = is_changed,
                            .trouble = trouble_of(*other)};
      if (other->trial)
        effect.change = other->trial->iteration_time / best.trial->iteration_time - 1;
      list.push_back(std::move(effect));
    }
    std::ranges::stable_sort(list, std::greater{}, &Tuning::Effect::change);
    return list;
  }

  std::string words_of(std::size_t axis, std::uint16_t option) const {
    std::string text;
    for (const auto& [key, value] : space_.axes[axis].options[option].sets)
      text += (text.empty() ? "" : " ") + key + "=" + value;
    return text.empty() ? "as it is" : text;
  }

  // The least bound of a combination's refinements, if it is below `least`: least_bound tells of
  // one that is lower, until none is.
  Seconds lowest(const Group& g, Seconds least) {
    for (Seconds bound = least;; least = bound) {
      bound = least_bound(pool_, space_, g.crossed, least);
      if (bound >= least) return least;
    }
  }

  void count_groups(Tuning& tuning) {
    const std::size_t refined = space_.axes.size() - space_.crossed;
    tuning.bound = best_time();
    for (const Group& g : groups_) {
      Tuning::Counts& n = tuning.counts;
      if (g.state == Group::State::refused) {
        ++n.refused, ++tuning.refusals[pool_.find(g.crossed)->screening.refusal];
      } else if (g.state == Group::State::over_limits) {
        ++n.over_limits;
      } else if (g.state == Group::State::cannot_fit) {
        ++n.cannot_fit;
      } else {
        const Candidate* c = pool_.find(g.start);
        if (refined == 0 && c != nullptr && (c->trial || !c->screening.bound.may_fit())) continue;
        // What was not looked at before an interruption stays open.
        if (is_over()) {
          ++n.open;
          continue;
        }
        if (least_bound(pool_, space_, g.crossed, best_time()) >= best_time()) {
          ++n.cannot_win;
        } else {
          ++n.open;
          tuning.bound = lowest(g, tuning.bound);
        }
      }
    }
    if (is_over()) tuning.bound = least_screened();
    tuning.is_proved =
        tuning.counts.open == 0 && !is_over() && pool_.best() != nullptr && !groups_.empty();
  }

  // Of all that were looked at: a simulated one takes its time, another no less than its bound.
  Seconds least_screened() const {
    Seconds least = best_time();
    for (const auto& [picks, c] : pool_.all()) {
      if (!c.trial && may_win(c)) least = std::min(least, c.screening.bound.time);
    }
    return least;
  }

  void rank(Tuning& tuning) const {
    for (const auto& [picks, c] : pool_.all()) {
      if (options_.simulates_all || c.trial) tuning.all.push_back(c);
      tuning.counts.fitting += c.is_acceptable() ? 1U : 0U;
    }
    if (options_.simulates_all) return;
    std::ranges::stable_sort(tuning.all, comes_before);
    std::set<Picks> seen;
    for (const Candidate& c : tuning.all) {
      if (!c.is_acceptable()) break;
      const Picks crossed(c.picks.begin(),
                          c.picks.begin() + static_cast<std::ptrdiff_t>(space_.crossed));
      if (seen.insert(crossed).second && seen.size() > 1) tuning.runners_up.push_back(c);
    }
  }

  Tuning result() {
    Tuning tuning{.margin = options_.margin};
    count_groups(tuning);
    if (const Candidate* best = pool_.best(); best != nullptr && !options_.simulates_all) {
      tuning.simplest = simplest();
      tuning.effects = effects(*pool_.best());
    }
    if (const Candidate* best = pool_.best()) tuning.best = *best;
    rank(tuning);
    if (const Candidate* today = pool_.find(space_.today())) tuning.today = *today;
    tuning.counts.space = space_.size();
    tuning.counts.crossed = groups_.size();
    tuning.counts.screened = pool_.screened();
    tuning.counts.simulated = pool_.simulated();
    tuning.counts.resumed = pool_.resumed();
    tuning.is_interrupted = is_over();
    return tuning;
  }

  const Space& space_;
  const TuneOptions& options_;
  CandidatePool pool_;
  std::vector<Group> groups_;
};

}  // namespace

Tuning tune(Evaluators& evaluators, const Space& space, const TuneOptions& options,
            ResultsLog* log) {
  return Search(evaluators, space, options, log).run();
}

Tuning tune(const Evaluator& evaluator, const Space& space, const TuneOptions& options,
            ResultsLog* log) {
  Threads threads(evaluator, options.threads);
  return tune(threads, space, options, log);
}

}  // namespace tidegate
