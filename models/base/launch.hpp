#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tidegate {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// Of this process, what launchers set.
Environment launch_environment();
/// Whether a launcher started several of us, by the variables that Open MPI, MPICH, PMIx and Slurm
/// set; `environment` as getenv gives it.
bool is_launched(const Environment& environment);
/// Whether this process speaks for those that were started with the same command: rank 0, and where
/// Open MPI starts several commands (mpirun A : B) the first rank of each; one that no launcher
/// started.
bool is_speaker(const Environment& environment);
/// Why MPI could not start in a launched process, where that is known: srun without a kind of PMI,
/// under which MPI_Init ends the process. Empty otherwise.
std::string why_no_mpi(const Environment& environment);

}  // namespace tidegate
