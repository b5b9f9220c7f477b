#include "validate/suite/suite.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "validate/suite/cases.hpp"

namespace tidegate {
namespace {

SuiteRow run_case(const SuiteFile& file, const SuiteCase& c, const TrialOptions& options) {
  Scenario scenario = scenario_of(file, c);
  try {
    const RealTrial trial = run_trial(scenario, options);
    return {c.name,         scenario.policy.describe(), scenario.machine.name(),
            scenario.ranks, trial.comparison,           trial.tries,
            c.cause};
  } catch (const InputError& error) {
    throw InputError(fmt::format("case '{}': {}", c.name, error.what()));
  }
}

template <class Has>
std::size_t count_rows(const Suite& suite, Has&& has) {
  return static_cast<std::size_t>(std::ranges::count_if(suite.rows, has));
}

bool is_conclusive(const SuiteRow& row) { return row.comparison.verdict != Verdict::inconclusive; }

// Of the iteration; 0 of a row that shows nothing.
double absolute_error(const SuiteRow& row) {
  return is_conclusive(row) ? std::abs(row.comparison.step.error().value_or(0)) : 0;
}

}  // namespace

std::optional<double> Suite::mean() const {
  if (conclusive() == 0) return std::nullopt;
  double sum = 0;
  for (const SuiteRow& row : rows) sum += absolute_error(row);
  return sum / static_cast<double>(conclusive());
}

std::optional<double> Suite::worst() const {
  if (conclusive() == 0) return std::nullopt;
  return absolute_error(*std::ranges::max_element(rows, {}, absolute_error));
}

std::size_t Suite::conclusive() const { return count_rows(*this, is_conclusive); }

std::size_t Suite::other_peaks() const {
  return count_rows(*this, [](const SuiteRow& r) { return !r.comparison.same_peaks(); });
}

std::size_t Suite::other_orders() const {
  return count_rows(*this, [](const SuiteRow& r) { return !r.comparison.reordered.empty(); });
}

Verdict Suite::verdict() const {
  if (conclusive() == 0) return Verdict::inconclusive;
  return *mean() <= mean_gate && *worst() <= worst_gate ? Verdict::agrees : Verdict::differs;
}

Suite run_suite(const SuiteOptions& options) {
  const SuiteFile file = read_suite(
      options.file.empty() ? TIDEGATE_DATA_DIR "/validate/suite/paced.yaml" : options.file);
  Suite suite{.pace = options.trial.pace, .rows = {}};
  for (const SuiteCase& c : chosen(file, options.only)) {
    if (options.progress) options.progress(c.name);
    suite.rows.push_back(run_case(file, c, options.trial));
  }
  return suite;
}

}  // namespace tidegate
