#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "validate/log/log.hpp"

/// The part of a log in which every iteration is like the others.
namespace tidegate {

/// Iterations at the beginning that are left out: the first two of six or more (DeepSpeed's own
/// ThroughputTimer begins with the third, start_step of deepspeed/utils/timer.py), the first of two
/// or more, and all that follow them and differ from the median of the later half by more than 10 %
/// and more than three spreads; never more than half.
std::size_t iterations_to_skip(std::span<const double> seconds);

/// `low` and `high` hold the middle half of the values.
struct Measured {
  double median = 0, low = 0, high = 0, most = 0;
  std::size_t values = 0;
};
Measured measured(std::span<const double> values);

/// A log's steady part. Phases are those of the rank whose iterations take longest, since it
/// decides when an iteration ends.
struct SteadyLog {
  std::int32_t rank = 0, ranks = 1;  ///< that is shown, and how many logged
  std::size_t iterations = 0;        ///< of that rank, those left out included
  std::size_t skipped = 0;           ///< at the beginning
  /// Median iteration of the slowest rank over that of the fastest.
  double rank_ratio = 1;
  LoggedSeries series, timers;  ///< of that rank (memory of all), the beginning left out
};
SteadyLog steady_part(const TrainingLog& log);

}  // namespace tidegate
