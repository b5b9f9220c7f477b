#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/demand.hpp"
#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"

namespace tidegate {

/// The laws that a simulated timeline breaks, one sentence each naming the task; empty when it
/// obeys:
///   a task starts at or after the end of everything in after(t), and takes at least its latency
///     and time alone, or none if it is skipped: together, the makespan is at least the critical
///     path;
///   a choice is yes only if what it watches ends (starts, if the rule is unstarted) no earlier
///   than
///     the task starts that decides it, and no only if no later, or if that task is skipped;
///   on a lane, starts never decrease and at most `width` tasks run;
///   tokens are never oversubscribed, and a lock is held by one rank at a time;
///   the work of each resource, at its lowest cost, fits into the makespan;
///   every buffer that is allocated is freed, once and not before; so every pool ends empty;
///   a pool's peak is what a sweep over starts and ends finds.
/// Times may be 2 ticks short per task, for rounding. demands[i] belongs to plan.works[i].
/// Effects are those that happened, with the timeline's outcomes. O(n log n) for n tasks and
/// effects.
std::vector<std::string> broken_laws(const Plan& plan, const Timeline& timeline,
                                     std::span<const Demand> demands,
                                     std::span<const Resource> resources);

}  // namespace tidegate
