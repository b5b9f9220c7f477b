#include <algorithm>

#include "sim/memory/caching_allocator.hpp"

// Expandable segments: ranges of addresses of which pages are mapped as they are needed.
namespace tidegate {

// What a free block can grow to.
std::int64_t CachingAllocator::reach(std::uint32_t number) const {
  const Block& block = blocks_[number];
  const bool grows = block.next != none && blocks_[block.next].state == State::unmapped;
  return block.size + (grows ? blocks_[block.next].size : 0);
}

std::uint32_t CachingAllocator::expand(std::uint32_t pool, std::int64_t size) {
  if (size > capacity_) return none;
  std::uint32_t block = growing_place(pool, size);
  if (blocks_[block].state == State::unmapped && !map(block, std::min(size, blocks_[block].size))) {
    return none;
  }
  while (blocks_[block].size < size) {
    const std::uint32_t next = blocks_[block].next;
    if (!map(next, std::min(size - blocks_[block].size, blocks_[next].size))) return none;
    block = next;  // which has taken the free block before it
  }
  remove(block);
  return block;
}

// The lowest run of free and unmapped blocks that can hold `size`, in a new range if none can.
std::uint32_t CachingAllocator::growing_place(std::uint32_t pool, std::int64_t size) {
  for (const Key& key : pools_[pool].unmapped) {
    const std::uint32_t before = blocks_[key.block].previous;
    const bool is_free = before != none && blocks_[before].state == State::free;
    const std::uint32_t first = is_free ? before : key.block;
    if (can_hold(first, size)) return first;
  }
  const std::int64_t unit = page(pool);
  const std::int64_t bytes = round_up(capacity_ + capacity_ / 8, unit);
  next_address_ = round_up(next_address_, unit);
  ++segments_;
  const std::uint32_t range = add({.address = next_address_,
                                   .size = bytes,
                                   .pool = pool,
                                   .state = State::unmapped,
                                   .expandable = true});
  next_address_ += bytes;
  insert(range);
  return range;
}

bool CachingAllocator::can_hold(std::uint32_t block, std::int64_t size) const {
  while (size > 0 && block != none && blocks_[block].state != State::used) {
    size -= blocks_[block].size;
    block = blocks_[block].next;
  }
  return size <= 0;
}

// Backs the first pages of an unmapped block that cover `size`; they become free.
bool CachingAllocator::map(std::uint32_t block, std::int64_t size) {
  const std::int64_t bytes = round_up(size, page(blocks_[block].pool));
  if (bytes > capacity_ - reserved_) return false;
  remove(block);
  if (bytes < blocks_[block].size) insert(cut(block, bytes));
  blocks_[block].state = State::free;
  merge_neighbours(block);
  insert(block);
  reserved_ += bytes;
  ++device_allocations_;
  return true;
}

// Gives back the pages that lie wholly in a free block.
void CachingAllocator::unmap(std::uint32_t block) {
  const std::int64_t unit = page(blocks_[block].pool);
  const std::int64_t end_of_block = blocks_[block].address + blocks_[block].size;
  const std::int64_t begin = round_up(blocks_[block].address, unit);
  const std::int64_t end = end_of_block / unit * unit;
  if (begin >= end) return;
  remove(block);
  if (begin > blocks_[block].address) {
    const std::uint32_t rest = cut(block, begin - blocks_[block].address);
    insert(block);
    block = rest;
  }
  if (end < end_of_block) insert(cut(block, end - begin));
  blocks_[block].state = State::unmapped;
  merge_neighbours(block);
  insert(block);
  reserved_ -= end - begin;
}

}  // namespace tidegate
