#include "calib/cluster/team.hpp"

#include <algorithm>
#include <cstdlib>

#include "calib/cluster/alone.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

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

std::string value_of(const Environment& environment, const char* name) {
  const auto at =
      std::ranges::find(environment, std::string(name), &Environment::value_type::first);
  return at == environment.end() ? "" : at->second;
}

bool is_input_error(const std::exception_ptr& failure) {
  if (!failure) return false;
  try {
    std::rethrow_exception(failure);
  } catch (const InputError&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void agree(Team& team, const std::exception_ptr& failure) {
  team.barrier();
  const bool is_input = team.any(is_input_error(failure));
  if (!team.any(failure != nullptr)) return;
  if (failure) std::rethrow_exception(failure);
  const std::string text = "another process of this run failed; its message says why";
  if (is_input) throw InputError(text);
  throw MachineError(text);
}

bool is_launched(const Environment& environment) {
  for (const Launcher& launcher : launchers) {
    const std::string count = value_of(environment, launcher.count);
    if (value_of(environment, launcher.rank).empty() || count.empty()) continue;
    return std::atoi(count.c_str()) > 1;
  }
  return false;
}

std::string why_no_mpi(const Environment& environment) {
  for (const char* rank : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}) {
    if (!value_of(environment, rank).empty()) return "";
  }
  return "Slurm started several processes that MPI cannot bring together; write srun --mpi=pmix … "
         "(srun --mpi=list says which kinds there are), or mpirun inside an allocation";
}

std::unique_ptr<Team> make_team() {
  Environment environment;
  const auto add = [&environment](const char* name) {
    if (const char* value = std::getenv(name)) environment.emplace_back(name, value);
  };
  for (const Launcher& launcher : launchers) add(launcher.rank), add(launcher.count);
  if (!is_launched(environment)) return std::make_unique<Alone>();
  if (!has_mpi()) {
    throw InputError(
        "several processes were started, and this build has no MPI; install an MPI (Debian: "
        "libopenmpi-dev) and build again, or start one process per node with its own --out");
  }
  if (const std::string why = why_no_mpi(environment); !why.empty()) throw InputError(why);
  return make_mpi_team();
}

}  // namespace tidegate::calib
