#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "validate/engine/device.hpp"
#include "validate/engine/gaps.hpp"
#include "validate/engine/mapping.hpp"

/// The memories of a rig: an arena per pool of the plan, from which every buffer gets an address.
///
/// An arena holds its capacity as asked for and not a byte more. It is a range of addresses without
/// pages; the system gives a page when it is first written, and it stays: huge ones where the
/// system has them, as calibration reads drives into (a drive that fills small pages is slower).
/// Addresses are plentiful, so gaps between buffers do not limit a pool. A pool of storage has a
/// count and no memory: its bytes lie in files (files.hpp).
///
/// With devices, a GPU's pool is memory of its device, buffer by buffer, and that of the host is
/// pinned where buffers lie, in pieces of Device::pinned_piece that stay pinned: buffers are taken
/// from the front, so that the pieces come to be in the first iteration.
namespace tidegate {

class Memories {
 public:
  using Sharing = Mapping::Sharing;
  explicit Memories(const Plan& plan, Sharing sharing = Sharing::own, Devices devices = {});
  ~Memories();
  Memories(const Memories&) = delete;
  Memories& operator=(const Memories&) = delete;

  /// Throws MachineError that names the pool, the task and whose bytes fill it.
  void allocate(BufferId buffer, TaskId task);
  /// Its pool counts it no longer, its memory stays: of a buffer that is freed while somebody
  /// reads.
  void let_go(BufferId buffer);
  void free(BufferId buffer);

  /// The memory of a buffer that is allocated; whole pages, so a little longer than asked for.
  /// Empty in storage. Of a device's pool: addresses of the device.
  std::span<std::byte> bytes_of(BufferId buffer) const;
  /// Highest number of bytes that a pool has held.
  std::int64_t peak(PoolId pool) const { return arenas_[index(pool)].peak; }

 private:
  struct Arena {
    Mapping memory;
    std::byte* base = nullptr;  // of the addresses within
    Gaps gaps;
    std::int64_t level = 0, peak = 0;
    Device* device = nullptr;          // of a GPU's pool
    std::vector<std::uint8_t> pinned;  // by piece
  };
  static constexpr std::int64_t nowhere = -1;

  const Plan& plan_;
  std::vector<Arena> arenas_;          // by pool
  std::vector<std::int64_t> offsets_;  // by buffer; on a device the address
  std::vector<bool> is_counted_;       // by buffer
  Devices devices_;

  static std::byte* at(std::int64_t address) { return reinterpret_cast<std::byte*>(address); }
  void map(Arena& arena, const Pool& pool, std::int64_t addresses, Sharing sharing) const;
  std::int64_t on_device(const Arena& arena, const Buffer& buffer, TaskId task) const;
  std::int64_t on_host(Arena& arena, const Buffer& buffer) const;
  void pin(Arena& arena, std::int64_t offset, std::int64_t bytes) const;
  std::string overfull(const Buffer& buffer, TaskId task) const;
};

}  // namespace tidegate
