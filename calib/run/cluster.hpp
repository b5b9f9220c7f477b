#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "calib/cluster/nodes.hpp"
#include "calib/cluster/team.hpp"
#include "calib/run/run.hpp"

/// The parts of a run that several processes take together. For calib/run alone.
namespace tidegate::calib {

/// Throws InputError for several processes on one host, unless they were asked for.
void check_team(const Team& team, const RunOptions& options);

/// Finds out which paths are one file system on all nodes and marks them; what the user said stays.
/// Returns what was seen, as checks.
std::vector<CheckResult> find_shared(Team& team, Setup& setup, const RunOptions& options);

/// Ranks of one host measure in turn, hosts at the same time. Throws on all ranks what failed on
/// one.
Measurements measure_nodes(Team& team, const std::function<Measurements()>& measure_own);

/// At rank 0 the measurements of all nodes; elsewhere nothing.
std::vector<NodeMeasurements> gather(Team& team, const Measurements& own, const std::string& id);

/// The rows of `more` behind those of `all`.
void add(Measurements& all, Measurements more);

/// What all do at once: the network, and the paths that they share.
struct Together {
  Measurements all;
  std::vector<Measurements> clients;  ///< at rank 0, by rank
  std::vector<std::pair<std::string, std::string>> not_measured;
  std::vector<CheckResult> checks;
};
Together measure_together(Team& team, const Setup& setup, const RunOptions& options,
                          std::int32_t passes,
                          const std::function<void(const std::string& doing)>& tell);

}  // namespace tidegate::calib
