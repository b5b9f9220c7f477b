#include "models/base/launch.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace tidegate {
namespace {

// What a launcher tells each process: its rank, and how many there are. In the order in which they
// count, since one may start the other. A shell or a batch script inside an allocation of Slurm has
// SLURM_NTASKS, the script SLURM_PROCID too; a step's own count is told to its processes alone.
struct Launcher {
  const char *rank, *count;
};
constexpr Launcher launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                  {"PMI_RANK", "PMI_SIZE"},
                                  {"PMI_RANK", "MPI_LOCALNRANKS"},
                                  {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"},
                                  {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};

// How many ranks each of mpirun's commands has, "2 1".
constexpr const char* command_sizes = "OMPI_APP_CTX_NUM_PROCS";

std::string value_of(const Environment& environment, const char* name) {
  const auto at =
      std::ranges::find(environment, std::string(name), &Environment::value_type::first);
  return at == environment.end() ? "" : at->second;
}

}  // namespace

Environment launch_environment() {
  Environment environment;
  const auto add = [&environment](const char* name) {
    if (const char* value = std::getenv(name)) environment.emplace_back(name, value);
  };
  for (const Launcher& launcher : launchers) add(launcher.rank), add(launcher.count);
  add(command_sizes);
  return environment;
}

bool is_launched(const Environment& environment) {
  for (const Launcher& launcher : launchers) {
    const std::string count = value_of(environment, launcher.count);
    if (value_of(environment, launcher.rank).empty() || count.empty()) continue;
    return std::atoi(count.c_str()) > 1;
  }
  return false;
}

bool is_speaker(const Environment& environment) {
  if (!is_launched(environment)) return true;
  const auto launcher = std::ranges::find_if(launchers, [&](const Launcher& l) {
    return !value_of(environment, l.rank).empty() && !value_of(environment, l.count).empty();
  });
  const int rank = std::atoi(value_of(environment, launcher->rank).c_str());
  std::istringstream sizes(value_of(environment, command_sizes));
  int first = 0;
  for (int size = 0; first < rank && sizes >> size;) first += size;
  return rank == 0 || first == rank;
}

std::string why_no_mpi(const Environment& environment) {
  for (const char* rank : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (!value_of(environment, rank).empty()) return "";
  }
  return "Slurm started several processes that MPI cannot bring together; write srun --mpi=pmix … "
         "(srun --mpi=list says which kinds there are), or mpirun inside an allocation";
}

}  // namespace tidegate
