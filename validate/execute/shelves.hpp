#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/plan/plan.hpp"
#include "validate/engine/mapping.hpp"
#include "validate/train/backend.hpp"

/// Memory in which the contents of a plan lie: that of their buffers, in the arenas of the rig, and
/// for contents that stand as long as the run a region of their own.
///
/// Contents of a buffer lie one after another, in the order in which they are first put. What finds
/// no room in its buffer lies in the region as well, and is counted: then the plan prices fewer
/// bytes than its meaning has.
///
/// With memory of a GPU, contents in pools of GPUs lie there, of all ranks in the one, and those
/// that stand as well; the arenas of these pools are then addresses that nobody writes to. What
/// finds no room lies in the region on the host.
///
/// With shared memory all of this, tables included, is the same in processes that fork later. The
/// plan orders who touches a content, and whoever hands on that order (a mutex, a socket) makes it
/// seen.
namespace tidegate {

class Shelves {
 public:
  /// The plan and the GPU's memory outlive it, which processes do not share. Throws MachineError
  /// when the system gives no addresses.
  Shelves(const Plan& plan, Mapping::Sharing sharing, train::RemoteMemory* gpu = nullptr);
  ~Shelves();
  Shelves(const Shelves&) = delete;
  Shelves& operator=(const Shelves&) = delete;

  /// A buffer has this memory from now on, or as much of the GPU's, and no longer; with it goes
  /// what lies in it. Throws MachineError when the GPU has no memory left.
  void open(BufferId buffer, std::span<std::byte> memory);
  void close(BufferId buffer);

  /// Throws std::logic_error when the buffer is not there and the access is unconditional.
  void put(const Access& at, std::span<const std::byte> bytes);
  std::optional<std::vector<std::byte>> get(const Access& at) const;
  void drop(const Access& at);

  /// Bytes that found no room in their buffers.
  std::int64_t beside() const { return region_->beside; }

 private:
  struct Row {  // of a content at a place
    std::atomic<bool> is_there;
    std::byte* address;
    std::int64_t room, length;
    bool is_remote;
  };
  struct Room {  // of a buffer
    std::atomic<std::byte*> base;
    std::int64_t size;
    std::atomic<std::int64_t> used;
  };
  struct Region {
    std::atomic<std::int64_t> used, beside;
  };
  struct Shelf {
    std::byte* address = nullptr;
    bool is_remote = false;
  };
  using Key = std::pair<std::uint64_t, ContentId>;  // buffer or pool first

  const Plan& plan_;
  std::vector<Key> keys_;  // sorted; a row each
  Mapping tables_, memory_;
  Row* rows_ = nullptr;
  Room* rooms_ = nullptr;
  Region* region_ = nullptr;
  train::RemoteMemory* gpu_;
  std::mutex mutex_;
  std::vector<std::byte*> standing_;  // on the GPU

  static Key key_of(const Access& at);
  Row& row_of(const Access& at) const;
  bool is_remote(PoolId pool) const {
    return gpu_ != nullptr && plan_.pools[index(pool)].place.tier == Tier::gpu;
  }
  std::byte* remote(PoolId pool, std::int64_t bytes) const;
  std::byte* beside(std::int64_t bytes);
  Shelf standing(PoolId pool, std::int64_t bytes);
  Shelf place(const Access& at, std::int64_t bytes);
};

}  // namespace tidegate
