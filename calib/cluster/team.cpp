#include "calib/cluster/team.hpp"

#include <algorithm>
#include <cstdlib>

#include "calib/cluster/alone.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

// Numbers of processes, as launchers tell them.
constexpr const char* counts[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS",
                                  "SLURM_NTASKS"};
// Set in a started process only: a shell inside an allocation has SLURM_NTASKS, but no rank.
constexpr const char* ranks[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};

}  // namespace

bool is_launched(const std::vector<std::pair<std::string, std::string>>& environment) {
  const auto value = [&environment](const char* name) -> std::string {
    const auto at = std::ranges::find(environment, std::string(name),
                                      &std::pair<std::string, std::string>::first);
    return at == environment.end() ? "" : at->second;
  };
  const bool has_rank =
      std::ranges::any_of(ranks, [&](const char* name) { return !value(name).empty(); });
  const bool are_several = std::ranges::any_of(
      counts, [&](const char* name) { return std::atoi(value(name).c_str()) > 1; });
  return has_rank && are_several;
}

std::unique_ptr<Team> make_team() {
  std::vector<std::pair<std::string, std::string>> environment;
  const auto add = [&environment](const char* name) {
    if (const char* value = std::getenv(name)) environment.emplace_back(name, value);
  };
  for (const char* name : counts) add(name);
  for (const char* name : ranks) add(name);
  if (!is_launched(environment)) return std::make_unique<Alone>();
  if (!has_mpi()) {
    throw InputError(
        "several processes were started, and this build has no MPI; install an MPI (Debian: "
        "libopenmpi-dev) and build again, or start one process per node with its own --out");
  }
  return make_mpi_team();
}

}  // namespace tidegate::calib
