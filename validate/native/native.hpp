#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calib/measure/protocol.hpp"
#include "sim/report/table.hpp"
#include "validate/compare/comparison.hpp"
#include "validate/engine/rig.hpp"
#include "validate/native/rates.hpp"
#include "validate/suite/trial.hpp"

/// Predictions of this machine held against this machine, at full speed.
///
///   pass       of measuring rates (rates.hpp)
///   floor      the first case, run again and again: by how much two runs of the same thing differ
///   pass
///   round      every case once, in random order, so that the runs of a case are apart in time
///   pass, round, … , pass
///
/// There are two predictions. The *forecast* is made before the first run, with the rates of the
/// first pass: what its error shows is the model's error and the drift of the machine. The
/// *prediction* of a run has the rates that were measured just before and just after its round,
/// their mean: what is left is the model's error, and the noise of rates and runs. The plan is the
/// same, made for the forecast. Storage paths of one drive are one resource in both.
///
/// A run beside other work does not count (calib/measure: GateLimits). A case is conclusive with
/// `least_clean` clean runs.
namespace tidegate {

struct NativeOptions {
  std::string file;                  ///< cases instead of those that ship
  std::string only;                  ///< only cases whose name contains this
  std::string hardware;              ///< profile of this machine; empty: measured, pass by pass
  std::vector<std::string> storage;  ///< a folder for each path, or one for all
  int rounds = 5;                    ///< clean runs wanted of each case
  int least_clean = 3;
  int floor_runs = 5;
  std::int32_t draws = 64;
  std::uint64_t seed = 7;  ///< of rates, orders and draws
  bool is_gated = true;    ///< false: samples and runs beside other work count too
  std::function<void(const std::string&)> progress;
};

/// One run of a case.
struct NativeRun {
  Seconds step;
  Seconds predicted;    ///< with the rates on both sides of its round
  double lateness = 0;  ///< Comparison::floor
  std::string spoiled;  ///< empty: it counts; else the reason: "0.83 cores busy with other work"

  std::optional<double> error() const { return Pair{predicted, step}.error(); }
};

struct NativeRow {
  std::string name, policy, cause;
  Seconds forecast;
  /// Widths, as the half of a nine-in-ten interval of the logarithm: of the forecast, with the
  /// deviation of rates over the whole suite, drift included; of predictions, with that between
  /// neighbouring passes. None without uncertainties.
  std::optional<double> forecast_reach, reach;
  std::vector<NativeRun> runs;
  /// Of the clean run whose step is nearest to the median, with its prediction; of the last run
  /// when none is clean.
  std::optional<Comparison> comparison;

  std::vector<double> clean() const;    ///< steps of clean runs, in seconds
  Seconds measured() const;             ///< their median; 0 without any
  Seconds predicted() const;            ///< median of the predictions of clean runs, or of all
  double spread() const;                ///< largest over smallest less 1; 0 without any
  std::optional<double> error() const;  ///< median of the errors of clean runs; none without any
  std::optional<double> forecast_error() const;        ///< forecast / measured - 1, likewise
  std::optional<PredictionInterval> interval() const;  ///< of predicted()
  std::optional<PredictionInterval> forecast_interval() const;
  std::optional<bool> is_inside() const;  ///< measured() within interval()
};

/// Errors and coverage of one kind of prediction, over the conclusive cases.
struct NativeScore {
  std::optional<double> median_error, worst_error;  ///< of the absolute errors; none without any
  /// Clean runs that lie within their interval, and all that have one; the same of medians.
  std::size_t inside = 0, all = 0, medians_inside = 0, medians = 0;
};

struct NativeSuite {
  std::string hardware;  ///< profile, or empty
  bool is_gated = true;
  /// Whether traffic of others on the drives was counted beside every run that uses files.
  bool knows_traffic = true;
  Rates first;     ///< of the first pass, or of the profile; uncertainties over the whole suite
  Rates all;       ///< of all passes; uncertainties between neighbours. Empty with a profile
  int passes = 0;  ///< that were measured
  double rate_seconds = 0;  ///< that measuring them took
  NativeRow floor;          ///< repeated runs of the first case
  std::vector<NativeRow> rows;
  double gate = 0.10;  ///< of the median of absolute errors of predictions
  int least_clean = 3;
  std::size_t least_conclusive = 8;  ///< cases, or all where there are fewer

  bool is_conclusive(const NativeRow& row) const;
  std::size_t conclusive() const;
  NativeScore score() const;                   ///< of predictions: what the gate is on
  NativeScore forecast_score() const;          ///< of forecasts
  std::optional<double> repeat_error() const;  ///< repeatability() of the floor's clean runs
  Verdict verdict() const;
};

/// By how much two runs of the same thing differ: the median over all pairs of |ln(a / b)|. None of
/// fewer than two.
std::optional<double> repeatability(const std::vector<double>& values);

/// Why a run does not count, as calibration judges its samples; empty when it does. Runs that use
/// files are judged as storage rows are.
std::string spoiled_by(const rig::Foreign& foreign, bool uses_files);

/// What is measured, and what runs.
struct NativeMachine {
  std::function<calib::Measurements(const RateOptions&)> measure = measure_rates;
  std::function<Execution(const Rig&, const Plan&)> run = run_on;
};

/// Throws InputError for a file or folder that is wrong, MachineError when rates cannot be
/// measured, rig::Interrupted on Ctrl-C.
NativeSuite run_native(const NativeOptions& options, const NativeMachine& machine = {});

Table cases_table(const NativeSuite& suite);
Table rates_table(const NativeSuite& suite);
std::string to_text(const NativeSuite& suite);
/// docs/run_json.md
std::string to_json(const NativeSuite& suite);

}  // namespace tidegate
