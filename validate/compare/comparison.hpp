#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/demand.hpp"
#include "sim/plan/plan.hpp"
#include "sim/report/period.hpp"
#include "sim/timeline/timeline.hpp"
#include "validate/compare/flips.hpp"

/// Prediction and measurement of one plan, task by task, and the device that explains what differs.
namespace tidegate {

/// Two times of the same thing. Errors are those of the prediction, signed, over what was measured:
/// below zero, it was predicted too short.
struct Pair {
  Seconds predicted, measured;
  /// None where nothing was measured.
  std::optional<double> error() const {
    if (measured <= Seconds(0)) return std::nullopt;
    return predicted / measured - 1;
  }
};
/// "+1.2 %"; empty without a value.
std::string percent(std::optional<double> error);

/// Tasks of the steady period that have something in common, and the sum of their times.
struct Group {
  std::string name;
  std::size_t tasks = 0;
  Pair time;
};

/// A device whose tasks all take longer, or shorter, than predicted.
///
/// Every task counts for the resource of which it takes the largest fraction, and its side. `ratio`
/// is the median of measured over predicted time of these tasks, weighted with predicted time, the
/// lateness of the host taken off; `spread` the width of the middle half of the same distribution,
/// over the median. A suspect has a ratio that is off by more than 6 % and by more than its spread,
/// and the time during which any of its tasks ran is off by 6 % in the same direction: how works
/// that meet divide a device changes their times, but not that. Being common to all, this is a rate
/// of the profile that is wrong, and no coincidence.
struct Suspect {
  std::string device;  ///< of a storage path with its direction: "nvme0 writes"
  std::size_t tasks = 0;
  double ratio = 1, spread = 0;
  Seconds exposed;  ///< of the measured critical path, per iteration
};

struct PoolPeak {
  std::string name;
  std::int64_t predicted = 0, measured = 0;
  Seconds predicted_at, measured_at;  ///< when the peak was first reached, from the run's start
};

/// Nine in ten predictions lie within, when the profile's values are drawn from their
/// uncertainties (sim/run/interval.hpp).
struct PredictionInterval {
  Seconds low, high;
  bool contains(Seconds time) const { return low <= time && time <= high; }
};

/// agrees         the step time is within the gate
/// differs        it is not
/// inconclusive   the host itself took more of the time than the gate allows, or nothing was
///                measured: nothing is shown
enum class Verdict : std::uint8_t { agrees, differs, inconclusive };
const char* name_of(Verdict verdict);

struct Comparison {
  Pair step;                             ///< an iteration of the steady period
  std::array<Pair, phase_count> phases;  ///< of it
  std::vector<Group> kinds, lanes;       ///< largest first
  std::vector<Group> path;               ///< critical paths, by kind of task; tasks of the measured
  std::vector<std::string> reordered;    ///< lanes with other tasks, or in another order
  std::size_t choices = 0, other_choices = 0;  ///< taken; with another outcome
  std::vector<PoolPeak> pools;
  std::vector<Flip> flips;        ///< what the three before come from
  std::vector<Suspect> suspects;  ///< most exposed first
  /// Part of the measured step that lateness of tasks on its critical path makes up: what the host
  /// adds and no model of a device can know.
  double floor = 0;
  double gate = 0;
  std::optional<PredictionInterval> interval;  ///< of the step, where it was asked for
  std::vector<std::string> remarks;            ///< where the run did not do what was predicted
  Verdict verdict = Verdict::agrees;

  bool same_peaks() const;
};

struct CompareOptions {
  std::vector<Instant> lateness;  ///< by task, of the measured run (Execution); may be empty
  double gate = 0.08;             ///< largest error of the step time that agrees
  std::optional<PredictionInterval> interval;
  std::vector<std::string> remarks;  ///< of the measured run (Execution)
};

/// demands[i] belongs to plan.works[i], as predicted. Both timelines are of this plan.
Comparison compare(const Plan& plan, const Timeline& predicted, const Timeline& measured,
                   std::span<const Demand> demands, std::span<const Resource> resources,
                   const CompareOptions& options = {});

std::string to_text(const Comparison& comparison);
/// docs/run_json.md
std::string to_json(const Comparison& comparison);

}  // namespace tidegate
