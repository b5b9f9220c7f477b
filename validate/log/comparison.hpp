#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/base/error.hpp"
#include "sim/report/report.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/log/log.hpp"
#include "validate/log/steady.hpp"

/// A log beside the prediction of the same run, phase by phase.
namespace tidegate {

/// error = predicted / measured - 1, nothing where nothing was measured. Times are medians over the
/// log's steady part, memory is the highest value logged.
struct LogRow {
  std::string name, unit;  ///< "forward", "s"; s, 1/s, B or TFLOP/s
  double predicted = 0;
  Measured measured;
  std::string note;  ///< what makes the two unlike
  double shown() const { return unit == "B" ? measured.most : measured.median; }
  std::optional<double> error() const {
    if (shown() <= 0) return std::nullopt;
    return predicted / shown() - 1;
  }
};

/// The log's run is not the scenario's.
struct LogMismatch {
  std::string what;  ///< "global batch"
  double logged = 0, scenario = 0;
  Where where;      ///< of a printed setting; without a line it was computed
  std::string how;  ///< "--set workload.micro_batch=4", or why there is no such change
};

/// A timer of the log that the prediction has no number for.
struct LogOnly {
  std::string name;
  Measured seconds;
  std::string why;
};

struct LogComparison {
  std::string scenario, profile;
  std::string file;
  std::vector<std::string> writers;
  std::size_t iterations = 0, skipped = 0;
  bool is_run_average = false;  ///< of the whole run, without iterations
  std::int32_t rank = 0, ranks = 1;
  double rank_ratio = 1;
  std::vector<LogRow> rows;
  std::vector<LogMismatch> mismatches;
  std::vector<LogOnly> only_logged;
  std::vector<std::string> only_predicted;  ///< "GPU memory: set memory_breakdown …"
  std::vector<std::string> notes;           ///< on the log and the prediction
  std::vector<std::string> explanations;    ///< where the difference lies, and what could make it
  std::vector<Problem> damaged;
  std::vector<std::string> next;  ///< commands, printed last

  const LogRow* row(const std::string& name) const;
};

/// `report` is the prediction of `scenario`. Never throws for what the two lack.
LogComparison compare(const TrainingLog& log, const Scenario& scenario, const Report& report);

std::string to_text(const LogComparison& comparison, std::size_t width = 80);
/// docs/logs.md
std::string to_json(const LogComparison& comparison);

}  // namespace tidegate
