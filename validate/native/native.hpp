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
///   rates      measured just before (rates.hpp), or those of a profile that calibration wrote
///   floor      the first case, run again and again: by how much two runs of the same thing differ
///   cases      several runs each, in rounds of random order, so that the runs of a case are apart
///              in time; a run beside other work does not count (calib/measure: GateLimits)
///
/// Predictions are made before the first run. Storage paths of one drive are one resource in them.
/// A case is conclusive with `least_clean` clean runs.
namespace tidegate {

struct NativeOptions {
  std::string file;                  ///< cases instead of those that ship
  std::string only;                  ///< only cases whose name contains this
  std::string hardware;              ///< profile of this machine; empty: measured now
  std::vector<std::string> storage;  ///< a folder for each path, or one for all
  int rounds = 5;                    ///< clean runs wanted of each case
  int least_clean = 3;
  int floor_runs = 5;
  std::int32_t passes = 3;  ///< of measuring rates
  std::int32_t draws = 64;
  std::uint64_t seed = 7;  ///< of rates, orders and draws
  bool is_gated = true;    ///< false: samples and runs beside other work count too
  std::function<void(const std::string&)> progress;
};

/// One run of a case.
struct NativeRun {
  Seconds step;
  double lateness = 0;  ///< Comparison::floor
  std::string spoiled;  ///< empty: it counts; else the reason: "0.83 cores busy with other work"
};

struct NativeRow {
  std::string name, policy, cause;
  Seconds predicted;
  std::optional<PredictionInterval> interval;
  std::vector<NativeRun> runs;
  /// Of the clean run whose step is the median, or of the last when none is clean.
  std::optional<Comparison> comparison;

  std::vector<double> clean() const;      ///< steps of clean runs, in seconds
  Seconds measured() const;               ///< their median; 0 without any
  double spread() const;                  ///< largest over smallest less 1
  double error() const;                   ///< predicted / measured - 1
  std::optional<bool> is_inside() const;  ///< the median within the interval; none without either
};

struct NativeSuite {
  std::string hardware;  ///< profile, or empty
  bool is_gated = true;
  Rates rates;
  double rate_seconds = 0;  ///< that measuring them took
  NativeRow floor;          ///< repeated runs of the first case
  std::vector<NativeRow> rows;
  double gate = 0.10;  ///< of the median of absolute errors
  int least_clean = 3;
  std::size_t least_conclusive = 8;  ///< cases, or all where there are fewer

  bool is_conclusive(const NativeRow& row) const;
  std::size_t conclusive() const;
  double median_error() const;  ///< of the absolute errors of conclusive cases; 0 without any
  double worst_error() const;
  /// Clean runs of conclusive cases that lie within their case's interval, and all of them.
  struct Coverage {
    std::size_t inside = 0, all = 0, medians_inside = 0, medians = 0;
  };
  Coverage coverage() const;
  double repeat_error() const;  ///< repeatability() of the floor's clean runs
  Verdict verdict() const;
};

/// By how much two runs of the same thing differ: the median over all pairs of |ln(a / b)|. 0 of
/// fewer than two.
double repeatability(const std::vector<double>& values);

/// Why a run does not count, as calibration judges its samples; empty when it does. Runs that use
/// files are judged as storage rows are.
std::string spoiled_by(const rig::Foreign& foreign, bool uses_files);

/// Throws InputError for a file or folder that is wrong, MachineError when rates cannot be
/// measured, rig::Interrupted on Ctrl-C.
NativeSuite run_native(const NativeOptions& options);

Table cases_table(const NativeSuite& suite);
Table rates_table(const NativeSuite& suite);
std::string to_text(const NativeSuite& suite);
/// docs/run_json.md
std::string to_json(const NativeSuite& suite);

}  // namespace tidegate
