#pragma once

#include <functional>
#include <span>
#include <vector>

#include "validate/engine/device.hpp"
#include "validate/engine/gpu_use.hpp"

namespace tidegate {

/// One member of a team that is tried.
struct TrialMember {
  DeviceSeat* seat = nullptr;
  std::span<std::byte> out, in;
};

/// Puts the numbers of a trial (exchange.hpp) into all of `out` of each member, does every exchange
/// once, by `run`, and looks at what each member received. What a library prepares with the first
/// use of a size is then done. Throws MachineError that names the GPU whose numbers are wrong.
void try_team(const Devices& devices, const GpuNeeds::Group& group,
              std::span<const TrialMember> members, std::span<const Exchange> exchanges,
              const std::function<void(const Exchange&)>& run);

}  // namespace tidegate
