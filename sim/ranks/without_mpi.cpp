#include "sim/ranks/mpi_link.hpp"

namespace tidegate {

bool has_mpi() { return false; }
std::unique_ptr<Link> make_mpi_link() { return nullptr; }

}  // namespace tidegate
