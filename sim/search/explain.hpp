#pragma once

#include <string>
#include <vector>

#include "sim/report/report.hpp"
#include "sim/search/tune.hpp"

namespace tidegate {

/// Why one configuration is faster than another: where its iteration's time goes.
struct Explanation {
  struct Shift {
    std::string name;
    Seconds before, after;
    Seconds change() const { return after - before; }
  };
  std::vector<Shift> phases;  ///< in their order
  std::vector<Shift>
      exposed;  ///< resources, latencies and waits on the critical path; most changed first
};
Explanation explain(const Report& before, const Report& after);

/// A search with all that its output says.
struct TuneReport {
  Tuning tuning;
  bool is_grid = false;
  std::vector<std::string> axes;  ///< of a grid: its keys
  std::string scenario, profile, revision;
  std::string command;  ///< "tidegate simulate FILE --set …": what a candidate's sets follow
  /// Of the best against the scenario as it is; nothing where either has no prediction.
  std::vector<Explanation> why_best;
  std::vector<Explanation> why_runners_up;  ///< of the first runners-up against the best
};

/// Predicts what is explained. `command` runs the scenario as it is.
TuneReport report_tuning(const Evaluator& evaluator, Tuning tuning, const std::string& command);

std::string to_text(const TuneReport& report, std::size_t width = 80);
/// One JSON object, schema "tidegate.tune/1", described in docs/tune.md.
std::string to_json(const TuneReport& report);
/// A line per candidate that was looked at in a grid, or simulated in a search.
std::string to_csv(const TuneReport& report);
/// "+3.1 %", and "0 %" for what would round to that.
std::string signed_percent(double fraction);
/// Quoted where it must be.
std::string csv_field(const std::string& text);

}  // namespace tidegate
