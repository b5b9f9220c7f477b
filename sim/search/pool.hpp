#pragma once

#include <map>
#include <vector>

#include "sim/search/evaluators.hpp"
#include "sim/search/tune.hpp"

namespace tidegate {

/// Acceptable ones first, then the shortest time for a token, fewest changes, and the order of the
/// space; of those that are not acceptable the one that fills its fullest pool least.
bool comes_before(const Candidate& a, const Candidate& b);

/// Why a candidate that was looked at is no choice; empty when it is one, or was not simulated.
std::string trouble_of(const Candidate& c);

/// All candidates that were looked at, each screened and simulated once.
class CandidatePool {
 public:
  CandidatePool(Evaluators& evaluators, const Space& space, const TuneOptions& options,
                ResultsLog* log)
      : evaluators_(evaluators), space_(space), options_(options), log_(log) {}

  void screen(const std::vector<Picks>& picks);
  /// Screens and keeps one; for callers that need no more than its bound.
  const Screening& screening(const Picks& picks);
  /// Simulates those that are not yet; `expected` simulations in all are told as the goal.
  void simulate(const std::vector<Picks>& picks, const char* doing, std::size_t expected = 0);

  bool allows_changes(const Picks& picks) const;
  const Candidate* find(const Picks& picks) const;
  /// Null: nothing acceptable yet.
  const Candidate* best() const { return best_; }
  const std::map<Picks, Candidate>& all() const { return all_; }
  std::size_t screened() const { return all_.size(); }
  std::size_t simulated() const { return simulated_; }
  std::size_t resumed() const { return resumed_; }

 private:
  Candidate candidate(const Picks& picks) const;
  void keep_screened(Candidate candidate, Screening screening);
  void evaluate(const std::vector<Candidate*>& list);
  void take(Candidate& c, Trial trial);
  void tell(const char* doing, std::size_t done, std::size_t most) const;

  Evaluators& evaluators_;
  const Space& space_;
  const TuneOptions& options_;
  ResultsLog* log_;
  std::map<Picks, Candidate> all_;
  const Candidate* best_ = nullptr;  // of all_
  std::size_t simulated_ = 0, resumed_ = 0;
};

}  // namespace tidegate
