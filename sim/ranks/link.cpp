#include "sim/ranks/link.hpp"

#include "models/base/error.hpp"
#include "models/base/launch.hpp"
#include "sim/ranks/mpi_link.hpp"

namespace tidegate {

std::unique_ptr<Link> make_link() {
  const Environment environment = launch_environment();
  if (!is_launched(environment)) return nullptr;
  if (!has_mpi()) {
    throw InputError(
        "several processes were started, and this build has no MPI; install an MPI (Debian: "
        "libopenmpi-dev) and build again, or start one process");
  }
  if (const std::string why = why_no_mpi(environment); !why.empty()) throw InputError(why);
  return make_mpi_link();
}

}  // namespace tidegate
