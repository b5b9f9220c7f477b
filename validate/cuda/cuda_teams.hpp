#pragma once

#include <memory>
#include <mutex>

#include "validate/engine/device_team.hpp"

namespace tidegate {

/// What starts work on several GPUs, or may wait for all that a GPU does, has this mutex meanwhile:
/// operations of different communicators have to be started in one order on all GPUs (NCCL User
/// Guide, "Using multiple NCCL communicators concurrently"), and a call that waits between the
/// starts on two GPUs would never return. Teams that share a GPU then run at the same time, which
/// NVIDIA says may work where all fit on it: not tried yet.
using LaunchMutex = std::shared_ptr<std::mutex>;

/// Collectives of this machine's GPUs by NCCL, all ranks from one thread. This has not run on GPUs
/// yet.
std::shared_ptr<DeviceTeams> cuda_teams(LaunchMutex launch);

}  // namespace tidegate
