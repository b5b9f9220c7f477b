#pragma once

#include "sim/ranks/link.hpp"

namespace tidegate {

bool has_mpi();
/// Starts MPI and ends it with the object; null where the build has none.
std::unique_ptr<Link> make_mpi_link();

}  // namespace tidegate
