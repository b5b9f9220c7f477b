#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/planner/builds.hpp"
#include "sim/planner/job.hpp"
#include "sim/report/report.hpp"
#include "sim/run/interval.hpp"
#include "sim/search/tune.hpp"

/// What one machine does for one workload: the tuned policy, its speed, what binds it, its price.
namespace tidegate::planner {

struct AssessOptions {
  std::size_t simulations = 16;          ///< of the search for a policy, at most
  std::size_t threads = 1;               ///< the result is the same for any
  double margin = 0.01;                  ///< as tune has it
  IntervalOptions interval{.draws = 0};  ///< draws = 0: none
  /// Policies of other machines (policy_of), where the search may begin as well.
  std::vector<std::vector<Override>> known;
  /// Iteration time from which on the machine is of no interest: where the bound of every policy is
  /// longer, none is simulated.
  Seconds enough = Seconds(1e300);
  std::function<bool()> is_stopped = [] { return false; };
  std::function<void(const TuneOptions::Progress&)> progress = [](const TuneOptions::Progress&) {};
};

struct Assessment {
  enum class State {
    trained,       ///< has a prediction
    refused,       ///< cannot be put together, or cannot divide the batch
    does_not_fit,  ///< no policy that was looked at fits
    cannot_win,    ///< no policy can be fast enough, by its bound
    over_budget,   ///< its purchase alone is
    stopped        ///< not looked at before the interruption
  };
  Build build;
  Bill bill;
  State state = State::stopped;
  std::string reason;  ///< of every state but trained
  std::string note;    ///< where the search began, when not at the scenario's policy

  // Of a machine with a prediction:
  Seconds iteration_time;
  double tokens_per_second = 0;
  std::optional<Report::Range> range;
  std::vector<Report::Elasticity> binding;  ///< largest first
  std::string policy, layout;               ///< in words
  std::vector<std::string> changes;         ///< against where the search began
  std::vector<Override> sets;               ///< that make the scenario this machine and policy
  std::vector<std::string> assumptions;     ///< of its profile
  Usage usage;
  Seconds time;  ///< of the run
  Costs costs;
  std::size_t simulated = 0;  ///< by the search
  bool is_proved = false;     ///< that no policy of the space is faster
  /// Of a machine that cannot win: no policy is faster.
  double most_tokens_per_second = 0;

  bool is_trained() const { return state == State::trained; }
  double days() const { return time.value() / 86400; }
};

/// Pure: the same input gives the same answer.
Assessment assess(const Catalog& catalog, const Build& build, const Job& job,
                  const AssessOptions& options);

}  // namespace tidegate::planner
