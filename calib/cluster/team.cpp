#include "calib/cluster/team.hpp"

#include "calib/cluster/alone.hpp"
#include "models/base/error.hpp"
#include "models/base/launch.hpp"

namespace tidegate::calib {
namespace {

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

std::unique_ptr<Team> make_team() {
  const Environment environment = launch_environment();
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
