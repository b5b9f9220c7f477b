#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calib/cluster/team.hpp"
#include "calib/measure/protocol.hpp"

/// A file system that nodes share, under load of several of them at once.
///
///   NAME.shared.read, .write              {block, depth, clients}
///   NAME.shared.read_other                {block, depth, clients}
///   NAME.shared.mixed_read, .mixed_write  {block, depth, write_cap, clients}
///
/// A value is what all clients moved, over the time of the slowest, bytes per second; the series of
/// a sample has each client's own rate. A client is one process with a file of its own, written in
/// full before. Clients start together and stop after the same time, so that none runs alone at
/// the end. Counts: 1, 2, 4, … and all; the mix and read_other with all only. Which ones take part
/// when not all do moves on with every pass. No gate: traffic of others cannot be told from that of
/// other clients.
///
/// read reads the client's own file, read_other a second one of half the size that another client
/// wrote, flushed and closed before it was opened; whose it is moves on with every pass.
namespace tidegate::calib {

struct SharedPlan {
  StorageTarget path;
  std::int32_t passes = 3, samples = 5;  ///< samples of a block, after a warm-up
  Seconds sample{0.5};
  Bytes file;    ///< of each client, at most
  Bytes budget;  ///< that all clients together may write, their files included
  std::uint64_t seed = 7;
};

struct SharedResult {
  Measurements all;                   ///< the same on every rank
  std::vector<Measurements> clients;  ///< at rank 0, of each rank: its own rate with all at work
  std::string why_not;                ///< it could not be measured; empty otherwise
};
/// Called by all ranks with the same plan but for the folder. A failure of one rank ends it on all,
/// with the reason; an interrupt leaves all.is_complete false.
SharedResult measure_shared(Team& team, const SharedPlan& plan,
                            const std::function<void(const std::string& doing)>& tell);

/// 1, 2, 4, … below `all`, and `all`.
std::vector<std::int32_t> client_counts(std::int32_t all);

}  // namespace tidegate::calib
