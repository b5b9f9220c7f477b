#pragma once

#include <algorithm>
#include <cstdint>

/// A 4-ary min-heap over storage that the caller owns: no allocation, few levels, children
/// adjacent. Entry needs operator<. `size` is the number of entries before the call.
namespace tidegate {

template <class Entry>
void heap_push(Entry* heap, std::uint32_t size, Entry entry) {
  std::uint32_t i = size;
  while (i > 0) {
    const std::uint32_t parent = (i - 1) / 4;
    if (!(entry < heap[parent])) break;
    heap[i] = heap[parent];
    i = parent;
  }
  heap[i] = entry;
}

/// Removes the least entry, heap[0].
template <class Entry>
void heap_pop(Entry* heap, std::uint32_t size) {
  const Entry entry = heap[--size];
  std::uint32_t i = 0;
  for (std::uint32_t child = 1; child < size; child = 4 * i + 1) {
    const std::uint32_t end = std::min(child + 4, size);
    std::uint32_t least = child;
    for (std::uint32_t c = child + 1; c < end; ++c) {
      if (heap[c] < heap[least]) least = c;
    }
    if (!(heap[least] < entry)) break;
    heap[i] = heap[least];
    i = least;
  }
  heap[i] = entry;
}

}  // namespace tidegate
