#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "models/work.hpp"

/// GPUs that do a collective together (NCCL, by validate/cuda).
namespace tidegate {

/// The members of one group, in the order of its ranks.
class DeviceTeam {
 public:
  virtual ~DeviceTeam() = default;
  /// Member i sends all of from[i] and receives all of to[i], lasting memory of its own GPU that
  /// does not overlap; fp32, summed. With n members and a whole of n equal parts (exchange.hpp):
  ///
  ///   all-reduce       from, to: whole. to is the sum of all from
  ///   all-gather       from: part, to: whole. Part k of to is what member k sends
  ///   reduce-scatter   from: whole, to: part. to is the sum of part i of all from
  ///   broadcast        from, to: whole. to is what member 0 sends
  ///   all-to-all       from, to: whole. Part k of to is part i of what member k sends
  ///
  /// Returns when all members are done. Throws MachineError.
  virtual void run(CollectiveKind kind, std::span<const std::span<const std::byte>> from,
                   std::span<const std::span<std::byte>> to) = 0;
};

class DeviceTeams {
 public:
  virtual ~DeviceTeams() = default;
  /// Empty where there are teams, else the reason. Takes no memory.
  virtual std::string why_absent() const = 0;
  /// Of GPUs by number, at least two.
  virtual std::unique_ptr<DeviceTeam> sit_down(std::span<const std::uint16_t> gpus) = 0;
};

}  // namespace tidegate
