#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/plan.hpp"
#include "validate/engine/device.hpp"
#include "validate/engine/exchange.hpp"

/// Which works of a plan are for GPUs, and what they need there.
namespace tidegate {

/// What the works of a lane need of GPUs, for one thread.
struct GpuNeeds {
  struct Gpu {
    std::vector<Kernel> kernels;
    std::int64_t out = 0, in = 0;  ///< bytes that leave its memory and arrive there, of one work
    bool has_files = false;
  };
  using Group = std::vector<std::uint16_t>;  ///< GPUs
  std::map<std::uint16_t, Gpu> gpus;
  std::map<Group, std::vector<Exchange>> teams;
  bool is_pinned = true;  ///< the host's end of copies
};
GpuNeeds gpu_needs(const Plan& plan, LaneId lane);

/// Bytes of host memory that a thread needs for a work beside real GPUs.
std::int64_t host_memory(const Work& work);

/// Throws InputError for what the devices do not do: a GPU that is not there, a collective of which
/// members are elsewhere. Throws MachineError where a collective needs a team and there is none.
/// Takes no memory.
void check_gpu_works(const Plan& plan, const Devices& devices);

/// Lets GPUs reach each other where the plan copies from one to another; says what goes through the
/// host all the same.
std::vector<std::string> let_gpus_meet(const Plan& plan, const Devices& devices);

/// "GPU 1 (NVIDIA H200)", "GPUs 0, 1 (NVIDIA H200)"
std::string to_text(const Devices& devices, std::span<const std::uint16_t> gpus);

}  // namespace tidegate
