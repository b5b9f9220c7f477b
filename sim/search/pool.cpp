#include "sim/search/pool.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/search/limits.hpp"

namespace tidegate {
namespace {

// Candidates screened between two looks at the clock or for a stop.
constexpr std::size_t chunk = 1024;

}  // namespace

bool comes_before(const Candidate& a, const Candidate& b) {
  if (a.is_acceptable() != b.is_acceptable()) return a.is_acceptable();
  const auto rank = [](const Candidate& c) {
    const double pace = c.trial ? c.trial->pace().value() : 0;
    const double time = c.trial ? c.trial->iteration_time.value() : 0;
    const double filling = c.is_acceptable() || !c.trial ? 0 : c.trial->fullest();
    return std::tuple(!c.trial, filling, pace, time, c.changes.size());
  };
  const auto mine = rank(a), other = rank(b);
  return mine != other ? mine < other : a.picks < b.picks;
}

std::string trouble_of(const Candidate& c) {
  if (!c.screening.refusal.empty()) return c.screening.refusal;
  if (!c.trial && c.screening.bound.may_fit()) return "";
  if (c.trial && c.trial->fits) return c.violates;
  for (const Need& need : c.trial ? c.trial->needs : c.screening.bound.needs) {
    if (need.fits()) continue;
    return fmt::format("does not fit: {} needs {}{} of {}", need.pool, c.trial ? "" : "at least ",
                       to_text(need.bytes), to_text(need.capacity));
  }
  return "does not fit";
}

Candidate CandidatePool::candidate(const Picks& picks) const {
  return {.picks = picks,
          .sets = space_.sets_of(picks),
          .changes = space_.changes_of(picks),
          .screening = {},
          .trial = std::nullopt,
          .violates = ""};
}

void CandidatePool::keep_screened(Candidate candidate, Screening screening) {
  candidate.screening = std::move(screening);
  limit(candidate.screening.bound.needs, options_.limits);
  const Picks key = candidate.picks;
  all_.emplace(key, std::move(candidate));
}

void CandidatePool::screen(const std::vector<Picks>& picks) {
  std::vector<Picks> missing;
  for (const Picks& p : picks) {
    if (!all_.contains(p)) missing.push_back(p);
  }
  for (std::size_t from = 0; from < missing.size() && !options_.is_stopped(); from += chunk) {
    const std::size_t count = std::min(chunk, missing.size() - from);
    std::vector<Candidate> list;
    std::vector<Evaluators::Sets> sets;
    for (std::size_t i = 0; i < count; ++i) {
      list.push_back(candidate(missing[from + i]));
      sets.push_back(list.back().sets);
    }
    std::vector<Screening> screenings = evaluators_.screen(sets);
    for (std::size_t i = 0; i < count; ++i)
      keep_screened(std::move(list[i]), std::move(screenings[i]));
    if (missing.size() > chunk) tell("screened", from + count, missing.size());
  }
}

const Screening& CandidatePool::screening(const Picks& picks) {
  if (!all_.contains(picks)) {
    Candidate c = candidate(picks);
    Screening screening = std::move(evaluators_.screen({c.sets}).front());
    keep_screened(std::move(c), std::move(screening));
  }
  return all_.at(picks).screening;
}

void CandidatePool::simulate(const std::vector<Picks>& picks, const char* doing,
                             std::size_t expected) {
  screen(picks);
  std::vector<Candidate*> list;
  for (const Picks& p : picks) {
    const auto at = all_.find(p);
    if (at == all_.end() || !at->second.screening.refusal.empty() || at->second.trial) continue;
    list.push_back(&at->second);
  }
  evaluate(list);
  tell(doing, simulated_, std::max(expected, simulated_));
}

// What the log knows is taken from there; the rest goes to it as soon as it is simulated, and
// counts in the order of the list.
void CandidatePool::evaluate(const std::vector<Candidate*>& list) {
  std::vector<std::optional<Trial>> trials(list.size());
  std::vector<std::size_t> unknown;
  std::vector<Evaluators::Sets> sets;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (log_ != nullptr) trials[i] = log_->find(list[i]->sets);
    if (trials[i]) {
      ++resumed_;
    } else {
      unknown.push_back(i);
      sets.push_back(list[i]->sets);
    }
  }
  const auto done = [&](std::size_t i, Trial trial) {
    if (log_ != nullptr) log_->append(sets[i], trial);
    trials[unknown[i]] = std::move(trial);
  };
  evaluators_.simulate(sets, done, options_.is_stopped);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (trials[i]) take(*list[i], std::move(*trials[i]));
  }
}

void CandidatePool::take(Candidate& c, Trial trial) {
  limit(trial.needs, options_.limits);
  c.violates = violated(trial, options_.limits);
  c.trial = std::move(trial);
  const bool is_choice = c.is_acceptable() && allows_changes(c.picks);
  if (is_choice && (best_ == nullptr || comes_before(c, *best_))) best_ = &c;
  ++simulated_;
}

bool CandidatePool::allows_changes(const Picks& picks) const {
  return !options_.limits.changes || space_.count_changes(picks) <= *options_.limits.changes;
}

const Candidate* CandidatePool::find(const Picks& picks) const {
  const auto at = all_.find(picks);
  return at == all_.end() ? nullptr : &at->second;
}

void CandidatePool::tell(const char* doing, std::size_t done, std::size_t most) const {
  const Candidate* now = best_;
  options_.progress({.doing = doing,
                     .done = done,
                     .most = most,
                     .best = now != nullptr ? now->trial->iteration_time : Seconds(0)});
}

}  // namespace tidegate
