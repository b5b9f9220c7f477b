#include "sim/search/pool.hpp"

#include <algorithm>
#include <atomic>
#include <tuple>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/search/limits.hpp"
#include "sim/search/parallel.hpp"

namespace tidegate {
namespace {

// Candidates screened between two looks at the clock or for a stop.
constexpr std::size_t chunk = 256;

}  // namespace

bool comes_before(const Candidate& a, const Candidate& b) {
  if (a.is_acceptable() != b.is_acceptable()) return a.is_acceptable();
  const auto rank = [](const Candidate& c) {
    const double time = c.trial ? c.trial->iteration_time.value() : 0;
    const double filling = c.is_acceptable() || !c.trial ? 0 : c.trial->fullest();
    return std::tuple(!c.trial, filling, time, c.changes.size());
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

Candidate CandidatePool::screened(const Picks& picks) const {
  Candidate c{.picks = picks,
              .sets = space_.sets_of(picks),
              .changes = space_.changes_of(picks),
              .screening = {},
              .trial = std::nullopt,
              .violates = ""};
  c.screening = evaluator_.screen(c.sets);
  limit(c.screening.bound.needs, options_.limits);
  return c;
}

void CandidatePool::screen(const std::vector<Picks>& picks) {
  std::vector<Picks> missing;
  for (const Picks& p : picks) {
    if (!all_.contains(p)) missing.push_back(p);
  }
  for (std::size_t from = 0; from < missing.size() && !options_.is_stopped(); from += chunk) {
    const std::size_t count = std::min(chunk, missing.size() - from);
    std::vector<Candidate> list(count);
    parallel_for(
        count, options_.threads, [&](std::size_t i) { list[i] = screened(missing[from + i]); },
        [] { return false; });
    for (Candidate& c : list) {
      const Picks key = c.picks;
      all_.emplace(key, std::move(c));
    }
    if (missing.size() > chunk) tell("screened", from + count, missing.size());
  }
}

const Screening& CandidatePool::screening(const Picks& picks) {
  const auto at = all_.find(picks);
  if (at != all_.end()) return at->second.screening;
  return all_.emplace(picks, screened(picks)).first->second.screening;
}

Trial CandidatePool::trial_of(const Candidate& c) const {
  if (log_ != nullptr) {
    if (const auto known = log_->find(c.sets)) return *known;
  }
  Trial trial = evaluator_.simulate(c.sets);
  if (log_ != nullptr) log_->append(c.sets, trial);
  return trial;
}

void CandidatePool::simulate(const std::vector<Picks>& picks, const char* doing,
                             std::size_t expected) {
  screen(picks);
  std::vector<Candidate*> list;
  for (const Picks& p : picks) {
    const auto at = all_.find(p);
    if (at != all_.end() && at->second.screening.refusal.empty() && !at->second.trial)
      list.push_back(&at->second);
  }
  std::vector<std::optional<Trial>> trials(list.size());
  std::vector<char> is_known(list.size(), 0);
  parallel_for(
      list.size(), options_.threads,
      [&](std::size_t i) {
        is_known[i] = log_ != nullptr && log_->find(list[i]->sets) ? 1 : 0;
        trials[i] = trial_of(*list[i]);
      },
      options_.is_stopped);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!trials[i]) continue;
    limit(trials[i]->needs, options_.limits);
    list[i]->violates = violated(*trials[i], options_.limits);
    list[i]->trial = std::move(trials[i]);
    const bool is_choice = list[i]->is_acceptable() && allows_changes(list[i]->picks);
    if (is_choice && (best_ == nullptr || comes_before(*list[i], *best_))) best_ = list[i];
    ++simulated_;
    resumed_ += is_known[i] != 0 ? 1U : 0U;
  }
  tell(doing, simulated_, std::max(expected, simulated_));
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
