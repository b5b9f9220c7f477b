// What runs and predictions show: the arithmetic of native.hpp.
#include <algorithm>
#include <cmath>

#include "calib/fit/statistics.hpp"
#include "validate/native/native.hpp"

namespace tidegate {
namespace {

std::optional<double> median_of(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  return calib::median(values);
}

std::optional<PredictionInterval> interval_around(Seconds middle, std::optional<double> reach) {
  if (!reach) return std::nullopt;
  return PredictionInterval{middle * std::exp(-*reach), middle * std::exp(*reach)};
}

// `error` and `interval` of a row, `own` interval of a run.
template <class ErrorOf, class IntervalOf, class OwnOf>
NativeScore score_of(const NativeSuite& suite, ErrorOf&& error, IntervalOf&& interval,
                     OwnOf&& own) {
  NativeScore score;
  std::vector<double> errors;
  for (const NativeRow& row : suite.rows) {
    if (!suite.is_conclusive(row)) continue;
    if (const std::optional<double> e = error(row)) errors.push_back(std::abs(*e));
    const auto range = interval(row);
    if (!range) continue;
    ++score.medians;
    if (range->contains(row.measured())) ++score.medians_inside;
    for (const NativeRun& run : row.runs) {
      if (!run.spoiled.empty()) continue;
      ++score.all;
      if (own(row, run).contains(run.step)) ++score.inside;
    }
  }
  score.median_error = median_of(errors);
  if (!errors.empty()) score.worst_error = std::ranges::max(errors);
  return score;
}

}  // namespace

std::vector<double> NativeRow::clean() const {
  std::vector<double> steps;
  for (const NativeRun& run : runs) {
    if (run.spoiled.empty()) steps.push_back(run.step.value());
  }
  return steps;
}

Seconds NativeRow::measured() const { return Seconds(median_of(clean()).value_or(0)); }

Seconds NativeRow::predicted() const {
  std::vector<double> of_clean, of_all;
  for (const NativeRun& run : runs) {
    of_all.push_back(run.predicted.value());
    if (run.spoiled.empty()) of_clean.push_back(run.predicted.value());
  }
  return Seconds(median_of(of_clean.empty() ? of_all : of_clean).value_or(forecast.value()));
}

double NativeRow::spread() const {
  const std::vector<double> steps = clean();
  return steps.empty() ? 0 : std::ranges::max(steps) / std::ranges::min(steps) - 1;
}

std::optional<double> NativeRow::error() const {
  std::vector<double> errors;
  for (const NativeRun& run : runs) {
    const std::optional<double> error = run.error();
    if (run.spoiled.empty() && error) errors.push_back(*error);
  }
  return median_of(errors);
}

std::optional<double> NativeRow::forecast_error() const {
  return Pair{forecast, measured()}.error();
}

std::optional<PredictionInterval> NativeRow::interval() const {
  return interval_around(predicted(), reach);
}

std::optional<PredictionInterval> NativeRow::forecast_interval() const {
  return interval_around(forecast, forecast_reach);
}

std::optional<bool> NativeRow::is_inside() const {
  if (!reach || clean().empty()) return std::nullopt;
  return interval()->contains(measured());
}

bool NativeSuite::is_conclusive(const NativeRow& row) const {
  return static_cast<int>(row.clean().size()) >= least_clean;
}

std::size_t NativeSuite::conclusive() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(rows, [this](const NativeRow& r) { return is_conclusive(r); }));
}

NativeScore NativeSuite::score() const {
  return score_of(
      *this, [](const NativeRow& row) { return row.error(); },
      [](const NativeRow& row) { return row.interval(); },
      [](const NativeRow& row, const NativeRun& run) {
        return *interval_around(run.predicted, row.reach);
      });
}

NativeScore NativeSuite::forecast_score() const {
  return score_of(
      *this, [](const NativeRow& row) { return row.forecast_error(); },
      [](const NativeRow& row) { return row.forecast_interval(); },
      [](const NativeRow& row, const NativeRun&) { return *row.forecast_interval(); });
}

std::optional<double> NativeSuite::repeat_error() const { return repeatability(floor.clean()); }

Verdict NativeSuite::verdict() const {
  const std::optional<double> error = score().median_error;
  if (!error || conclusive() < std::min(least_conclusive, rows.size()))
    return Verdict::inconclusive;
  return *error <= gate ? Verdict::agrees : Verdict::differs;
}

std::optional<double> repeatability(const std::vector<double>& values) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      differences.push_back(std::abs(std::log(values[i] / values[j])));
    }
  }
  return median_of(differences);
}

std::string spoiled_by(const rig::Foreign& foreign, bool uses_files) {
  const calib::Row row{.quantity = "native",
                       .gate = uses_files ? calib::Gate::io : calib::Gate::cpu,
                       .device = "the drive"};
  return calib::spoiled_by(row, foreign, calib::GateLimits{});
}

}  // namespace tidegate
