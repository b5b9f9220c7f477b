#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/planner/catalog.hpp"
#include "sim/planner/money.hpp"
#include "sim/scenario/scenario.hpp"

/// The machines that a catalog describes, one by one.
namespace tidegate::planner {

/// One machine: nodes of the same kind.
struct Build {
  std::size_t entry = 0;  ///< of Catalog::machines
  std::size_t host = 0, gpu = 0;
  std::optional<std::size_t> drive;
  std::int64_t nodes = 1, gpus = 1, drives = 0;  ///< GPUs and drives of a node
  Bytes memory;                                  ///< of a node
  /// Where it stands in the grid of its entry: nodes, GPUs, drives, memory.
  std::array<std::size_t, 4> at{};
  std::string name;     ///< "2 nodes: 4x h100, 8x pm9a3, 512 GiB"
  std::string refusal;  ///< why it cannot be put together; empty when it can
};

/// Every combination of every entry, in the order of the file. What slots, lanes or the profile do
/// not allow is there with its refusal.
std::vector<Build> builds_of(const Catalog& catalog);

/// As a scenario is set to run on it. The drives of a node are one striped path, `nvme`; paths of
/// the profile that have other names stay. The cores of a host are shared out evenly: with n ranks
/// on a NUMA node in place of the profile's m, each updates at m/n of its rate. GPUs take the
/// profile's root ports in order; those beyond its own have none.
std::vector<Override> sets_of(const Catalog& catalog, const Build& build);

Bill bill_of(const Catalog& catalog, const Build& build);

}  // namespace tidegate::planner
