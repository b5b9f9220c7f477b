#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/table.hpp"
#include "validate/suite/trial.hpp"

/// Scenarios times policies, predicted and run for real: how well the predictor knows what it
/// simulates.
namespace tidegate {

struct SuiteOptions {
  std::string file;  ///< cases instead of those that ship
  std::string only;  ///< only cases whose name contains this
  TrialOptions trial{.tries = 3};
  std::function<void(const std::string& name)> progress;
};

struct SuiteRow {
  std::string name, policy, profile;
  int ranks = 1;
  Comparison comparison;
  int tries = 1;
  std::string cause;  ///< of a miss that is understood, as the file says
};

struct Suite {
  Pace pace = Pace::paced;
  std::vector<SuiteRow> rows;
  double mean_gate = 0.03, worst_gate = 0.08;

  /// Of the absolute errors of rows that are not inconclusive; none without any.
  std::optional<double> mean() const;
  std::optional<double> worst() const;
  std::size_t conclusive() const;
  /// Rows with other peaks, or tasks that ended in another order.
  std::size_t other_peaks() const;
  std::size_t other_orders() const;
  /// Whether mean and worst are within their gates; inconclusive where no row shows anything.
  Verdict verdict() const;
};

/// Throws InputError for a file that is wrong, and as run_trial does.
Suite run_suite(const SuiteOptions& options);

Table cases_table(const Suite& suite);
std::string to_text(const Suite& suite);
/// docs/run_json.md
std::string to_json(const Suite& suite);

}  // namespace tidegate
