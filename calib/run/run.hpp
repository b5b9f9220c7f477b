#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calib/cluster/nodes.hpp"
#include "calib/cluster/team.hpp"
#include "calib/measure/protocol.hpp"
#include "calib/node/node.hpp"

/// `tidegate calib`: options → set-up → benches → measurements → profile.
namespace tidegate::calib {

struct RunOptions {
  std::vector<std::string> storage;  ///< "DIR" or "name=DIR"
  std::string out;                   ///< the profile
  Effort effort = Effort::standard;
  std::vector<std::string> only;  ///< benches by name; empty: all
  bool resume = false, identify = false;
  bool is_gated = true;  ///< false: samples beside other work count too, and the profile says so
  std::vector<std::string> shared, local;  ///< names of paths, where the user knows better
  bool node_per_rank = false;  ///< every rank counts as a node, in turn: to try a cluster run out
  Bytes write_budget{0};       ///< 0: by effort
  Bytes file_size{0};          ///< 0: by effort
  Bytes sustained{0};          ///< of the long write to each path; 0: none
  std::int32_t threads = 0, passes = 0;  ///< 0: as many as there are; by effort
  std::uint64_t seed = 7;
  std::optional<NamedGpus> gpus;
  std::string command;  ///< as given, for provenance
  std::string tool;
};

/// Resolves folders, sizes and budgets; throws InputError for whatever is wrong with them, before
/// anything is written.
Setup make_setup(const RunOptions& options);

struct Selected {
  std::vector<std::unique_ptr<Bench>> benches, canaries;
  std::vector<std::string> names;                                 ///< of the benches, for --only
  std::vector<std::pair<std::string, std::string>> not_measured;  ///< name, reason
};
/// The benches of the table that --only names (unknown names are InputErrors with the nearest) and
/// that can run here.
Selected select(const RunOptions& options, const Setup& setup);

Protocol protocol_of(const RunOptions& options, const Setup& setup);

/// What would be written where, how many bytes, how long, and the wear in drive-writes.
std::string dry_run_text(const RunOptions& options);

struct Outcome {
  std::vector<Outlier> outliers;  ///< rows at which a node is slow, the worst first
  std::string profile, raw;       ///< files written
  Measurements measurements;
  NodeProfile node;
  Account account;
  bool is_complete = false;
};
/// Measures and writes OUT and, beside it, OUT's name with .samples.jsonl; when interrupted, both
/// under names that end in .incomplete. Nothing else is left behind.
///
/// With a team: every node measures itself, a file system that they share on rank 0 alone; then all
/// together the network, and what they share under the load of all. Rank 0 pools the blocks of all,
/// names the slow nodes and writes. A failure of one process ends all.
Outcome run(const RunOptions& options, Team& team,
            const std::function<void(const ProgressNow&)>& progress);
/// The page that a person reads afterwards.
std::string to_text(const Outcome& outcome);
std::string to_json(const Outcome& outcome);

}  // namespace tidegate::calib
