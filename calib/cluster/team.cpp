#include "calib/cluster/team.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "calib/cluster/alone.hpp"
#include "models/base/error.hpp"
#include "models/base/launch.hpp"

namespace tidegate::calib {
namespace {

struct Failure {
  int exit_code = 0;  // 0: none
  std::string text;
};

Failure read(const std::exception_ptr& failure) {
  if (!failure) return {};
  try {
    std::rethrow_exception(failure);
  } catch (const InputError& error) {
    return {2, error.what()};
  } catch (const MachineError& error) {
    return {3, error.what()};
  } catch (const std::exception& error) {
    return {4, error.what()};
  }
}

int most_serious(Team& team, int own) {
  for (const int code : {4, 3, 2}) {
    if (team.any(own == code)) return code;
  }
  return 0;
}

// Each text once, in the order of ranks, with the first rank that has it.
std::string told_by(const std::vector<std::string>& texts) {
  std::string all;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const auto first = std::ranges::find(texts, texts[rank]) - texts.begin();
    if (texts[rank].empty() || static_cast<std::size_t>(first) != rank) continue;
    if (!all.empty()) all += "\n";
    all += rank == 0 ? texts[rank] : fmt::format("process {}: {}", rank, texts[rank]);
  }
  return all;
}

}  // namespace

void agree(Team& team, const std::exception_ptr& failure) {
  team.barrier();
  const Failure own = read(failure);
  const int code = most_serious(team, own.exit_code);
  if (code == 0) return;
  if (team.size() == 1) std::rethrow_exception(failure);
  const std::string text = told_by(team.gather(own.text));
  if (team.rank() != 0) throw ToldByFirst(code);
  if (code == 2) throw InputError(text);
  if (code == 3) throw MachineError(text);
  throw std::logic_error(text);
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
