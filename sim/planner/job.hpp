#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/planner/builds.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/search/evaluate.hpp"

namespace tidegate::planner {

/// What every machine is asked to do. The global batch is fixed: each divides it among its GPUs in
/// its own way, and accumulates the rest.
struct Job {
  std::string name;       ///< of the scenario
  ScenarioSource source;  ///< hardware and policy may be left out
  std::vector<Override> overrides;
  std::int64_t sequences = 0;  ///< of one iteration
  double tokens_per_sequence = 0;
  double tokens = 0;  ///< of the run
  double tokens_per_iteration() const {
    return static_cast<double>(sequences) * tokens_per_sequence;
  }
};

/// `sequences` of an iteration; 0: those of the scenario on its own machine. Throws InputError with
/// the problems of the scenario.
Job job_of(const ScenarioSource& source, const std::vector<Override>& overrides, double tokens,
           std::int64_t sequences = 0);

/// The scenario on this machine, with the policy where its search begins.
struct Start {
  std::unique_ptr<Evaluator> evaluator;
  std::vector<Override> sets;  ///< of the machine, its division and its policy
  std::string refusal, note;
  std::string why;  ///< it does not begin at the scenario's policy; empty where it does
};

/// The scenario's own policy where the machine can have it, else what needs least GPU memory; a
/// refusal where neither is a configuration or the batch does not divide over the GPUs.
Start start_of(const Catalog& catalog, const Build& build, const Job& job);

/// What of `sets` is not the machine: its policy and how the batch is divided.
std::vector<Override> policy_of(const std::vector<Override>& sets);

/// The start, or where that is faster the fastest that fits of usual policies that keep more on the
/// GPU, which a short search from a start that offloads everything may not come to; and of the
/// `known` policies of other machines, each with its division of the batch and with that of the
/// start: what won on one machine is often not far from what wins on the next.
Start better_start(Start start, const Job& job, const std::vector<std::vector<Override>>& known);

/// A later list's values in place of an earlier one's.
std::vector<Override> together(const std::vector<Override>& first,
                               const std::vector<Override>& second);

/// The first problem, without its place.
std::string first_problem(const InputError& error);

}  // namespace tidegate::planner
