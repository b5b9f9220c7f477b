#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

/// What PyTorch's caching allocator takes from one GPU for a sequence of allocations and frees.
///
/// Rules, as read in github.com/pytorch/pytorch, c10/cuda/CUDACachingAllocator.cpp at 001074d:
///
///   rounding   a request takes a whole number of 512 B.
///   pools      rounded requests up to 1 MiB are cut from segments of 2 MiB; below 10 MiB from
///              segments of 20 MiB; from 10 MiB on a segment is the request rounded up to 2 MiB.
///              Each stream has its own small and its own large free blocks.
///   best fit   the smallest free block that suffices, of equal ones that of the lowest address.
///   splitting  what is left over becomes a free block when it is 512 B or more (small pool), more
///              than 1 MiB (large pool), 512 B or more (expandable). Else it goes with the request
///              and counts as allocated.
///   merging    a freed block merges with free neighbours of its segment.
///   when full  segments without a block in use go back to the device and the request asks for a
///              new one once more; if that fails too, it is out of memory.
///
/// max_split_size: free blocks of that size or more are never split; smaller requests do not get
/// them, larger ones only when less than 20 MiB would be wasted. When the device is full, the
/// smallest of them that suffices is given back first, or several from the largest down.
///
/// expandable_segments: each stream and pool has a range of addresses, 9/8 of the device's memory,
/// of which pages of 2 MiB (small) or 20 MiB (large) are mapped from the lowest address that can
/// hold the request. A free block counts as large as it can grow. When the device is full, pages
/// without a block in use are unmapped.
///
/// Addresses of new segments are ascending here; real ones are cudaMalloc's business. Left out:
/// roundup_power2_divisions, garbage_collection_threshold (acts only with a memory fraction), CUDA
/// graphs' private pools.
namespace tidegate {

struct AllocatorOptions {
  bool expandable_segments = false;
  std::int64_t max_split_size = std::numeric_limits<std::int64_t>::max();  ///< bytes
  bool operator==(const AllocatorOptions&) const = default;
};

/// Blocks are kept by number, and the free ones of a pool in one sorted array: they are tens to
/// hundreds, of which moving some is cheaper than a node for each.
class CachingAllocator {
 public:
  enum class BlockId : std::uint32_t {};

  /// A block in use, for whoever checks that they do not overlap.
  struct Extent {
    std::int64_t address = 0, bytes = 0;
  };

  /// `capacity` in bytes: what is left of the device for the framework.
  CachingAllocator(std::int64_t capacity, const AllocatorOptions& options);

  /// A block for `bytes` > 0, or nothing: out of memory.
  std::optional<BlockId> allocate(std::int64_t bytes, std::uint32_t stream = 0);
  void free(BlockId block);
  /// Gives back what no block in use needs (torch.cuda.empty_cache).
  void empty_cache();

  std::int64_t allocated() const { return allocated_; }  ///< torch.cuda.memory_allocated
  std::int64_t reserved() const { return reserved_; }    ///< torch.cuda.memory_reserved
  std::int64_t segments() const { return segments_; }    ///< held now; ranges when expandable
  /// Segments taken from the device so far, or mappings of pages: num_device_alloc.
  std::int64_t device_allocations() const { return device_allocations_; }
  /// Times that the device was full and the cache was flushed: num_alloc_retries.
  std::int64_t retries() const { return retries_; }
  Extent extent(BlockId block) const;

  static std::int64_t rounded(std::int64_t bytes);

 private:
  enum class State : std::uint8_t { free, used, unmapped };
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  struct Block {
    std::int64_t address = 0, size = 0;
    std::uint32_t previous = none, next = none;  // neighbours in the segment
    std::uint32_t pool = 0;                      // 2 · stream, one more when small
    State state = State::free;
    bool expandable = false;
  };
  struct Key {
    std::int64_t size = 0, address = 0;  // size is 0 where only the address orders
    std::uint32_t block = none;
    auto operator<=>(const Key&) const = default;
  };
  class Keys {
   public:
    auto begin() const { return keys_.begin(); }
    auto end() const { return keys_.end(); }
    bool empty() const { return keys_.empty(); }
    /// The first that is not before `key`.
    auto lower_bound(const Key& key) const { return std::ranges::lower_bound(keys_, key); }
    void insert(const Key& key) { keys_.insert(lower_bound(key), key); }
    void erase(const Key& key) { keys_.erase(lower_bound(key)); }

   private:
    std::vector<Key> keys_;
  };
  struct Pool {
    Keys free;      // by size
    Keys unmapped;  // by address
  };

  static std::int64_t round_up(std::int64_t bytes, std::int64_t unit) {
    return (bytes + unit - 1) / unit * unit;
  }
  static std::int64_t segment_size(std::int64_t size);
  static bool is_small(std::uint32_t pool) { return pool % 2 == 1; }
  std::int64_t page(std::uint32_t pool) const;
  std::uint32_t pool_of(std::int64_t size, std::uint32_t stream);
  std::uint32_t add(const Block& block);
  void insert(std::uint32_t block);
  void remove(std::uint32_t block);
  /// Cuts the front `size` off a block that is in no set; the rest becomes its next neighbour.
  std::uint32_t cut(std::uint32_t block, std::int64_t size);
  /// Takes neighbours of the same state into a block that is in no set.
  void merge_neighbours(std::uint32_t block);

  std::uint32_t find(std::uint32_t pool, std::int64_t size);
  std::uint32_t take(std::uint32_t pool, std::int64_t size);
  std::uint32_t new_segment(std::uint32_t pool, std::int64_t size);
  bool should_split(const Block& block, std::int64_t size) const;
  void release(std::uint32_t block);
  bool release_oversized(std::uint32_t pool, std::int64_t size);

  std::int64_t reach(std::uint32_t block) const;
  std::uint32_t expand(std::uint32_t pool, std::int64_t size);
  std::uint32_t growing_place(std::uint32_t pool, std::int64_t size);
  bool can_hold(std::uint32_t block, std::int64_t size) const;
  bool map(std::uint32_t block, std::int64_t size);
  void unmap(std::uint32_t block);

  AllocatorOptions options_;
  std::int64_t capacity_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> unused_;  // numbers of blocks_ that may be given anew
  std::vector<Pool> pools_;
  std::int64_t next_address_ = 0;
  std::int64_t allocated_ = 0, reserved_ = 0, segments_ = 0;
  std::int64_t device_allocations_ = 0, retries_ = 0;
};

}  // namespace tidegate
