#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/base/units.hpp"

/// The processes of one run over a cluster: those of mpirun or srun, or this one alone.
namespace tidegate::calib {

class Team {
 public:
  virtual ~Team() = default;
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t size() const = 0;
  /// Which of the ranks of its host this one is.
  virtual std::int32_t rank_on_host() const = 0;
  /// Hosts, numbered by their first rank.
  virtual std::int32_t host() const = 0;
  virtual std::int32_t hosts() const = 0;

  virtual void barrier() = 0;
  /// Every rank's text at rank 0, in the order of ranks; empty elsewhere.
  virtual std::vector<std::string> gather(const std::string& text) = 0;
  /// Every rank gets the text of rank 0.
  virtual std::string broadcast(const std::string& text) = 0;
  /// Whether it holds on any rank.
  virtual bool any(bool holds) = 0;

  /// Seconds of one sum over all ranks of `bytes` of fp32 each, as the slowest rank sees it.
  virtual Seconds all_reduce(std::int64_t bytes) = 0;
  /// Seconds of one message one way, half of there and back, between rank 0 and `peer`; the same on
  /// every rank.
  virtual Seconds send(std::int32_t peer, std::int64_t bytes) = 0;
};

/// A failure of any rank, on the others than 0: rank 0 tells it.
struct ToldByFirst : std::runtime_error {
  explicit ToldByFirst(int code) : std::runtime_error("rank 0 tells"), exit_code(code) {}
  int exit_code;
};

/// After work that each rank did for itself, `failure` of it or null: throws on every rank if it
/// failed on any, so that no rank waits for one that is gone. On rank 0 the kind of error that is
/// most serious (logic_error, MachineError, InputError), with what every rank has to say, each text
/// once; ToldByFirst elsewhere. Waits asleep for the slowest.
void agree(Team& team, const std::exception_ptr& failure);

/// MPI when a launcher started us, else alone. Throws InputError when a launcher started a build
/// without MPI, for every process would write the same file, and for what why_no_mpi says.
std::unique_ptr<Team> make_team();

}  // namespace tidegate::calib
