#include "sim/memory/caching_allocator.hpp"

#include <algorithm>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;
constexpr std::int64_t least_block = 512;
constexpr std::int64_t largest_small_request = mebibyte;
constexpr std::int64_t small_segment = 2 * mebibyte;
constexpr std::int64_t large_segment = 20 * mebibyte;
constexpr std::int64_t least_own_segment = 10 * mebibyte;
constexpr std::int64_t segment_rounding = 2 * mebibyte;
// A device without a bound; ranges of 9/8 of it still add up within 63 bits.
constexpr std::int64_t unbounded = std::int64_t{1} << 52;

}  // namespace

CachingAllocator::CachingAllocator(std::int64_t capacity, const AllocatorOptions& options)
    : options_(options), capacity_(std::clamp<std::int64_t>(capacity, 0, unbounded)) {}

std::int64_t CachingAllocator::rounded(std::int64_t bytes) { return round_up(bytes, least_block); }

std::int64_t CachingAllocator::segment_size(std::int64_t size) {
  if (size <= largest_small_request) return small_segment;
  if (size < least_own_segment) return large_segment;
  return round_up(size, segment_rounding);
}

std::int64_t CachingAllocator::page(std::uint32_t pool) const {
  return is_small(pool) ? small_segment : large_segment;
}

std::uint32_t CachingAllocator::pool_of(std::int64_t size, std::uint32_t stream) {
  const std::uint32_t pool = 2 * stream + (size <= largest_small_request ? 1 : 0);
  if (pool >= pools_.size()) pools_.resize(pool + 1);
  return pool;
}

std::optional<CachingAllocator::BlockId> CachingAllocator::allocate(std::int64_t bytes,
                                                                    std::uint32_t stream) {
  ensure(bytes > 0, "an allocation has bytes");
  const std::int64_t size = rounded(bytes);
  const std::uint32_t block = take(pool_of(size, stream), size);
  if (block == none) return std::nullopt;
  if (should_split(blocks_[block], size)) insert(cut(block, size));
  blocks_[block].state = State::used;
  allocated_ += blocks_[block].size;
  return BlockId{block};
}

void CachingAllocator::free(BlockId id) {
  const auto block = static_cast<std::uint32_t>(id);
  ensure(block < blocks_.size() && blocks_[block].state == State::used, "a freed block was in use");
  allocated_ -= blocks_[block].size;
  blocks_[block].state = State::free;
  merge_neighbours(block);
  insert(block);
}

void CachingAllocator::empty_cache() {
  std::vector<std::uint32_t> whole, growable;
  for (const Pool& pool : pools_) {
    for (const Key& key : pool.free) {
      const Block& block = blocks_[key.block];
      if (block.expandable) {
        growable.push_back(key.block);
      } else if (block.previous == none && block.next == none) {
        whole.push_back(key.block);
      }
    }
  }
  for (const std::uint32_t block : whole) release(block);
  for (const std::uint32_t block : growable) unmap(block);
}

CachingAllocator::Extent CachingAllocator::extent(BlockId id) const {
  const Block& block = blocks_[static_cast<std::uint32_t>(id)];
  return {block.address, block.size};
}

std::uint32_t CachingAllocator::take(std::uint32_t pool, std::int64_t size) {
  std::uint32_t block = find(pool, size);
  if (block == none) block = new_segment(pool, size);
  if (block == none && release_oversized(pool, size)) block = new_segment(pool, size);
  if (block != none) return block;
  empty_cache();
  ++retries_;
  return new_segment(pool, size);
}

std::uint32_t CachingAllocator::find(std::uint32_t pool, std::int64_t size) {
  const Keys& free = pools_[pool].free;
  auto at = free.lower_bound({size, 0, 0});
  if (at == free.end()) return none;
  if (options_.expandable_segments) {
    for (auto next = std::next(at); next != free.end() && reach(next->block) < reach(at->block);) {
      at = next++;
    }
  }
  const std::int64_t most = options_.max_split_size;
  if (size < most && at->size >= most) return none;
  if (size >= most && at->size - size >= large_segment) return none;
  const std::uint32_t block = at->block;
  remove(block);
  return block;
}

bool CachingAllocator::should_split(const Block& block, std::int64_t size) const {
  const std::int64_t rest = block.size - size;
  if (is_small(block.pool) || options_.expandable_segments) return rest >= least_block;
  return size < options_.max_split_size && rest > largest_small_request;
}

std::uint32_t CachingAllocator::new_segment(std::uint32_t pool, std::int64_t size) {
  if (options_.expandable_segments) return expand(pool, size);
  const std::int64_t bytes = segment_size(size);
  if (bytes > capacity_ - reserved_) return none;
  reserved_ += bytes;
  ++segments_;
  ++device_allocations_;
  const std::uint32_t block = add({.address = next_address_, .size = bytes, .pool = pool});
  next_address_ += bytes;
  return block;
}

void CachingAllocator::release(std::uint32_t block) {
  remove(block);
  reserved_ -= blocks_[block].size;
  --segments_;
  unused_.push_back(block);
}

// A block of max_split_size or more was never split: it is a whole segment.
bool CachingAllocator::release_oversized(std::uint32_t pool, std::int64_t size) {
  const std::int64_t most = options_.max_split_size;
  const Keys& free = pools_[pool].free;
  const std::int64_t wanted = std::max(size, most);
  const auto fitting = free.lower_bound({wanted, 0, 0});
  if (fitting != free.end()) {
    release(fitting->block);
    return true;
  }
  std::int64_t released = 0;
  while (released < wanted && !free.empty() && std::prev(free.end())->size >= most) {
    released += std::prev(free.end())->size;
    release(std::prev(free.end())->block);
  }
  return released >= wanted;
}

std::uint32_t CachingAllocator::add(const Block& block) {
  if (unused_.empty()) {
    blocks_.push_back(block);
    return static_cast<std::uint32_t>(blocks_.size() - 1);
  }
  const std::uint32_t number = unused_.back();
  unused_.pop_back();
  blocks_[number] = block;
  return number;
}

void CachingAllocator::insert(std::uint32_t number) {
  const Block& block = blocks_[number];
  Pool& pool = pools_[block.pool];
  if (block.state == State::free) {
    pool.free.insert({block.size, block.address, number});
  } else {
    pool.unmapped.insert({0, block.address, number});
  }
}

void CachingAllocator::remove(std::uint32_t number) {
  const Block& block = blocks_[number];
  Pool& pool = pools_[block.pool];
  if (block.state == State::free) {
    pool.free.erase({block.size, block.address, number});
  } else {
    pool.unmapped.erase({0, block.address, number});
  }
}

std::uint32_t CachingAllocator::cut(std::uint32_t number, std::int64_t size) {
  Block rest = blocks_[number];
  rest.address += size;
  rest.size -= size;
  rest.previous = number;
  const std::uint32_t added = add(rest);
  if (rest.next != none) blocks_[rest.next].previous = added;
  blocks_[number].next = added;
  blocks_[number].size = size;
  return added;
}

void CachingAllocator::merge_neighbours(std::uint32_t number) {
  const std::uint32_t before = blocks_[number].previous;
  if (before != none && blocks_[before].state == blocks_[number].state) {
    remove(before);
    Block& block = blocks_[number];
    block.address = blocks_[before].address;
    block.size += blocks_[before].size;
    block.previous = blocks_[before].previous;
    if (block.previous != none) blocks_[block.previous].next = number;
    unused_.push_back(before);
  }
  const std::uint32_t after = blocks_[number].next;
  if (after != none && blocks_[after].state == blocks_[number].state) {
    remove(after);
    Block& block = blocks_[number];
    block.size += blocks_[after].size;
    block.next = blocks_[after].next;
    if (block.next != none) blocks_[block.next].previous = number;
    unused_.push_back(after);
  }
}

}  // namespace tidegate
