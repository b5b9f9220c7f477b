#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/base/units.hpp"
#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"

/// Iterations and phases of a timeline, from the plan's marks.
///
/// The k-th phase of an iteration ends when the k-th mark of every rank has ended; it began where
/// the phase before it ended. The iteration ends with its last phase, and the next begins there, so
/// phases tile iterations and iterations tile time from 0. Work that an iteration leaves behind
/// (writes that drain during the next forward) delays nobody and belongs to the time in which it
/// runs. An iteration without marks ends with the last of its tasks and is all `other`.
namespace tidegate {

using PhaseTimes = std::array<Seconds, phase_count>;

struct Iteration {
  Instant from = 0, to = 0;
  PhaseTimes phases{};         ///< by Phase; a phase that comes twice is added up
  std::optional<TaskId> last;  ///< the task whose end is the iteration's end

  Seconds time() const { return to_seconds(to - from); }
};

std::vector<Iteration> iterations_of(const Plan& plan, const Timeline& timeline);

/// The iterations that stand for a long run: the last two of three or more, else the last one.
struct Steady {
  std::size_t first = 0;  ///< index of its first iteration
  std::size_t count = 1;
  Instant from = 0, to = 0;
  std::optional<TaskId> last;

  bool contains(std::size_t iteration) const {
    return iteration >= first && iteration < first + count;
  }
  Seconds time() const { return to_seconds(to - from); }
  double iterations() const { return static_cast<double>(count); }
};

Steady steady_period(const std::vector<Iteration>& iterations);

}  // namespace tidegate
