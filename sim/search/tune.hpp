#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/search/evaluators.hpp"
#include "sim/search/results.hpp"
#include "sim/search/space.hpp"

/// Searches a space for the configuration with the shortest steady iteration.
///
///   1. every combination of the crossed axes is screened (bound.hpp)
///   2. in the order of their bounds they are simulated, until no bound is below the best time
///   3. around the best ones, one refined axis is changed at a time, as long as that helps; then
///      what helped the best is tried on the others whose bound still allows it
///   4. what was left out is counted with its reason: cannot fit, cannot win, or not looked at
///
/// A bound that is no less than the best time proves that a candidate cannot win. For a combination
/// of which no refinement was looked at, the least bound of its refinements decides.
/// The result depends neither on who evaluates the candidates nor on their timing.
namespace tidegate {

/// What a configuration may need at most.
struct Limits {
  std::map<std::string, Bytes> bytes;  ///< by "gpu", "host", or storage path
  std::optional<double> life_years;    ///< least, of every drive
  std::optional<std::size_t> changes;  ///< keys that differ from the scenario
};

struct TuneOptions {
  Limits limits;
  std::size_t threads = 1;
  std::size_t most_simulations = 500;
  double margin = 0.01;        ///< two times that differ by less, relative, are not told apart
  bool simulates_all = false;  ///< every candidate of the crossed axes, whatever its bound
  std::function<bool()> is_stopped = [] { return false; };
  struct Progress {
    const char* doing = "";
    std::size_t done = 0, most = 0;
    Seconds best;  ///< zero: nothing yet
  };
  /// Called between batches, from one thread.
  std::function<void(const Progress&)> progress = [](const Progress&) {};
};

struct Candidate {
  Picks picks;
  std::vector<Override> sets;
  std::vector<std::string> changes;  ///< axes that differ from the scenario
  Screening screening;
  std::optional<Trial> trial;
  std::string violates;  ///< the limit that the trial exceeds; empty: none
  bool is_acceptable() const { return trial && trial->fits && violates.empty(); }
};

struct Tuning {
  /// Part of the change in a key that the best makes, or of one that it does not make.
  struct Effect {
    std::string axis;
    std::string sets;         ///< the alternative: "key=value", or "as it is"
    double change = 0;        ///< iteration time with the alternative over that of the best, less 1
    bool is_changed = false;  ///< in the best
    std::string trouble;      ///< why the alternative is no choice; empty: it is one
  };
  struct Counts {
    double space = 0;         ///< combinations of all axes
    std::size_t crossed = 0;  ///< combinations of the crossed axes
    std::size_t screened = 0;
    std::size_t refused = 0;      ///< crossed: not a configuration
    std::size_t cannot_fit = 0;   ///< crossed, proved
    std::size_t over_limits = 0;  ///< crossed: more changes than allowed
    std::size_t cannot_win = 0;   ///< crossed, proved for all refinements
    std::size_t simulated = 0, resumed = 0;
    std::size_t open = 0;  ///< crossed: neither proved nor, with every refinement, simulated
    std::size_t fitting = 0;
  };

  std::vector<Candidate> all;  ///< of a grid: in its order; else what was simulated, best first
  Candidate today;
  std::optional<Candidate> best;
  /// Least changes with a time within the margin of the best.
  std::optional<Candidate> simplest;
  std::vector<Candidate> runners_up;  ///< of other crossed choices, within twice the time
  std::vector<Effect> effects;        ///< of the best: largest gain first
  Counts counts;
  std::map<std::string, std::size_t> refusals;
  /// No configuration of the space takes less: the best time, or the least bound of what is open.
  /// Of a search that was interrupted: no configuration that was screened.
  Seconds bound;
  bool is_proved = false;  ///< nothing is left open
  bool is_interrupted = false;
  double margin = 0;
};

/// All configurations of the space train the same tokens: bounds are of an iteration's time. Throws
/// InputError when no candidate is a configuration, or an axis is never accepted.
Tuning tune(Evaluators& evaluators, const Space& space, const TuneOptions& options,
            ResultsLog* log = nullptr);
/// With threads of this process, options.threads of them.
Tuning tune(const Evaluator& evaluator, const Space& space, const TuneOptions& options,
            ResultsLog* log = nullptr);

}  // namespace tidegate
