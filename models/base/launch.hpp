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
/// Why MPI could not start in a launched process, where that is known: srun without a kind of PMI,
/// under which MPI_Init ends the process. Empty otherwise.
std::string why_no_mpi(const Environment& environment);

}  // namespace tidegate
