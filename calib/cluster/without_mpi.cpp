#include "calib/cluster/alone.hpp"

namespace tidegate::calib {

bool has_mpi() { return false; }
std::unique_ptr<Team> make_mpi_team() { return std::make_unique<Alone>(); }

}  // namespace tidegate::calib
