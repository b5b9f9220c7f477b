#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/work.hpp"
#include "validate/engine/device_team.hpp"
#include "validate/engine/direct_files.hpp"

namespace tidegate {

/// What one thread has the GPU do. Every call returns when the GPU is done.
class DeviceSeat {
 public:
  virtual ~DeviceSeat() = default;
  /// At least one end is memory of the device, the other that or the host's. Same lengths.
  virtual void copy(std::span<const std::byte> from, std::span<std::byte> to) = 0;
  /// The same of the first `each` bytes of every `pitch` alone, which is a multiple of `each`.
  virtual void copy_pieces(std::span<const std::byte> from, std::span<std::byte> to,
                           std::size_t each, std::size_t pitch) = 0;
  /// From memory of the device to that of another GPU. Same lengths.
  virtual void copy_to(std::uint16_t gpu, std::span<const std::byte> from,
                       std::span<std::byte> to) = 0;
  /// All FLOPs and bytes of the kernels, one after the other, on memory of the seat's own.
  virtual void run(std::span<const Kernel> kernels) = 0;
};

/// A GPU that does a plan's works for real (validate/cuda). Addresses that it hands out are its
/// own: the host neither reads nor writes there. Calls come from several threads; all of them throw
/// MachineError when the device fails.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  /// Of buffers, which come and go. Throws MachineError when no memory is left.
  virtual std::byte* allocate(std::int64_t bytes) = 0;
  /// Never throws.
  virtual void free(std::byte* at) = 0;
  /// Of what threads have for themselves, as long as a run: slower to get, and such that other GPUs
  /// and files reach it.
  virtual std::byte* allocate_lasting(std::int64_t bytes) = 0;
  virtual void free_lasting(std::byte* at) = 0;
  /// Page-locks host memory, for every GPU, so that copies go at full speed; and lets it go, which
  /// never throws. A copy of a seat may lie in several neighbouring pieces that were pinned one by
  /// one, when they begin and end at multiples of `pinned_piece`.
  virtual void pin(std::span<std::byte> pages) = 0;
  virtual void unpin(std::span<std::byte> pages) = 0;
  static constexpr std::size_t pinned_piece = std::size_t{256} << 20;
  /// From now on copies of GPU `other` to this one go straight. False where the machine does not
  /// let them: then they go through the host.
  virtual bool admit(std::uint16_t other) = 0;
  /// For a thread that will run these kernels: what takes time to prepare is done here.
  virtual std::unique_ptr<DeviceSeat> sit_down(std::span<const Kernel> kernels) = 0;
};

/// The GPUs that a rig has. Empty: host memory and the CPU stand for GPUs.
struct Devices {
  std::vector<std::shared_ptr<Device>> each;  ///< by number of the GPU
  std::shared_ptr<DeviceTeams> teams;         ///< null: they do no collectives
  std::shared_ptr<DirectFiles> files;         ///< null: no file goes straight to their memory

  bool empty() const { return each.empty(); }
  std::size_t size() const { return each.size(); }
  const std::shared_ptr<Device>& at(std::size_t gpu) const { return each.at(gpu); }
};

/// Lasting memory of a device, given back when it goes. Move-only.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(std::shared_ptr<Device> device, std::int64_t bytes)
      : device_(std::move(device)),
        bytes_(device_->allocate_lasting(bytes), static_cast<std::size_t>(bytes)) {}
  ~DeviceMemory() { release(); }
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::shared_ptr<Device> device_;
  std::span<std::byte> bytes_;

  void swap(DeviceMemory& other) noexcept {
    std::swap(device_, other.device_), std::swap(bytes_, other.bytes_);
  }
  void release() {
    if (device_ != nullptr) device_->free_lasting(bytes_.data());
  }
};

/// Host memory that is pinned, let go when this goes. Move-only.
class PinnedPages {
 public:
  PinnedPages() = default;
  PinnedPages(std::shared_ptr<Device> device, std::span<std::byte> pages)
      : device_(std::move(device)), pages_(pages) {
    device_->pin(pages_);
  }
  ~PinnedPages() {
    if (device_ != nullptr) device_->unpin(pages_);
  }
  PinnedPages(PinnedPages&& other) noexcept { swap(other); }
  PinnedPages& operator=(PinnedPages&& other) noexcept {
    swap(other);
    return *this;
  }

 private:
  std::shared_ptr<Device> device_;
  std::span<std::byte> pages_;

  void swap(PinnedPages& other) noexcept {
    std::swap(device_, other.device_), std::swap(pages_, other.pages_);
  }
};

}  // namespace tidegate
