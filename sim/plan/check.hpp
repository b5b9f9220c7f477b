#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan.hpp"

namespace tidegate {

/// What a plan gets wrong, one sentence per fault, each naming the task; empty when it is sound:
///   every reference is to something that exists (otherwise nothing else is looked at);
///   acyclic, with the order of lanes as edges;
///   every choice is decided by one task, other than the one that it watches, and watches one;
///   a task that hangs on a choice comes after the task that decides it, or is the watched task
///   itself, at its end (unfinished) or at all (unstarted), or names that as predecessor: those
///   that ask earlier are told no, and thereby make it no. Locks and decisions hang on no choice;
///   with all outcomes that can occur together (sim/plan/outcomes.hpp), every buffer is allocated
///   once and freed once, or neither, and the free comes after the allocation by dependencies or
///   the order of a lane, not by luck;
///   tokens are given back as often as they are taken under the same condition, and no task takes
///   more than exist;
///   no task holds two locks;
///   every rank marks the same phases in every iteration, if any.
///
/// Not looked at: whether an outcome can occur at all, and whether a task uses what a skipped one
/// would have made.
///
/// O(tasks + dependencies), and for each buffer a search back from its free that stops at the first
/// task of the allocating lane: a few steps in plans that policies make, at worst all tasks between
/// the two.
std::vector<std::string> faults(const Plan& plan);

}  // namespace tidegate
