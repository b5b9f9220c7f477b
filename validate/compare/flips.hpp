#pragma once

#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"

/// Which two events came in the other order, where two timelines of one plan differ in order.
namespace tidegate {

/// `second` came after `first` by this much, below zero before it: the two differ in sign. How near
/// the predicted one is to zero tells whether the difference is one of chance.
struct Flip {
  std::string of;             ///< "choice", or the name of a pool
  std::string first, second;  ///< "end of store layer 3 tensor 2 (iteration 1, rank 0)"
  Seconds predicted, measured;
};

/// In this order, without what only follows from another (a lane keeps the order of the plan in
/// both timelines, so other tasks on it are those that a choice left out):
///   choices whose outcome differs, the earliest (as measured) first; the moment of the watched
///     task that the rule asks for, and the start of the task that decides. Not where either
///     timeline skipped one of the two
///   pools, where the peaks differ: of the buffers that lie in memory at the higher peak, the one
///     freed first and the one allocated last in the timeline with the lower peak
std::vector<Flip> find_flips(const Plan& plan, const Timeline& predicted, const Timeline& measured);

}  // namespace tidegate
