#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "validate/engine/device.hpp"
#include "validate/engine/gpu_use.hpp"

namespace tidegate {

/// Memory of GPUs that direct files know, for as long as this lives. Move-only.
class AttachedMemory {
 public:
  AttachedMemory(std::shared_ptr<DirectFiles> files, std::uint16_t gpu,
                 std::span<std::byte> memory);
  ~AttachedMemory();
  AttachedMemory(AttachedMemory&& other) noexcept = default;
  AttachedMemory& operator=(AttachedMemory&& other) noexcept = default;

 private:
  std::shared_ptr<DirectFiles> files_;
  std::uint16_t gpu_;
  std::span<std::byte> memory_;
};

/// What one thread has of GPUs: of each that the works of its lane name a seat and memory for both
/// ends of a work, of each group of them a team. Every end lies on its own GPU.
class GpuKit {
 public:
  GpuKit() = default;
  /// `host` is memory of the thread's own, filled with ordinary numbers; it is pinned here where
  /// all copies of the lane are, and outlives the kit. `direct` is null where no file goes
  /// straight. Every exchange of a team is done once and its results are compared: throws
  /// MachineError when a GPU received other numbers.
  GpuKit(const GpuNeeds& needs, const Devices& devices, std::span<std::byte> host,
         const std::shared_ptr<DirectFiles>& direct);

  DeviceSeat& seat(std::uint16_t gpu) { return *gpus_.at(gpu).seat; }
  /// Memory whose bytes leave the GPU, and in which bytes arrive.
  std::span<std::byte> out(std::uint16_t gpu) const { return gpus_.at(gpu).out.bytes(); }
  std::span<std::byte> in(std::uint16_t gpu) const { return gpus_.at(gpu).in.bytes(); }
  /// By the team of its group.
  void run(const Collective& collective);

 private:
  struct Gpu {
    DeviceMemory out, in;
    std::unique_ptr<DeviceSeat> seat;
  };
  PinnedPages pinned_;
  std::map<std::uint16_t, Gpu> gpus_;
  std::vector<AttachedMemory> attached_;
  std::map<GpuNeeds::Group, std::unique_ptr<DeviceTeam>> teams_;

  void sit_down(std::uint16_t number, const GpuNeeds::Gpu& need,
                const std::shared_ptr<Device>& device, std::span<std::byte> host,
                const std::shared_ptr<DirectFiles>& direct);
  void run(const GpuNeeds::Group& group, const Exchange& exchange);
};

}  // namespace tidegate
