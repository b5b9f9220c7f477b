#pragma once

#include <vector>

#include "models/work.hpp"
#include "sim/plan/plan.hpp"

/// What an iteration of a policy cannot do without, told without a plan. From it comes a bound that
/// no schedule of the policy beats (sim/search/bound.hpp).
namespace tidegate {

/// Works of one rank in a steady iteration. A policy names what it is sure of and may leave out the
/// rest. Bytes that move in many pieces are named as one work, which costs no more than its pieces:
/// rates grow with sizes, and latencies count once.
struct LeastWork {
  std::vector<Work> passes;   ///< end before the update begins, in any order
  std::vector<Work> in_turn;  ///< of the update, one after another
  std::vector<Work> update;   ///< of the update, in any order beside those in turn
  std::vector<Work> anytime;  ///< at some time of the iteration
  /// The update begins when backward has ended; false: it may run beside the next iteration.
  bool follows_backward = true;
};

/// A policy's plan before its first iteration: the pools and what stands in them, and what follows.
struct Outline {
  Plan standing;                 ///< set up and tear down, nothing between
  std::vector<LeastWork> least;  ///< by rank
};

}  // namespace tidegate
