#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/work.hpp"

/// Works that need nothing but memory of the thread's own: real arithmetic and copies of the stated
/// sizes, in parts.
namespace tidegate {

/// Memory, handed out in whole pages from the front.
class Carving {
 public:
  explicit Carving(std::span<std::byte> memory) : rest_(memory) {}
  std::span<std::byte> bytes(std::int64_t count);
  template <class T>
  std::span<T> take(std::int64_t count) {
    const auto raw = bytes(count * static_cast<std::int64_t>(sizeof(T)));
    return {reinterpret_cast<T*>(raw.data()), static_cast<std::size_t>(count)};
  }

 private:
  std::span<std::byte> rest_;
};

/// Fills memory with numbers between 0.5 and 2, read as fp32, bf16 or fp16. Zeros and subnormal
/// numbers take another time to compute with.
void fill_ordinary(std::span<std::byte> memory);

/// Bytes that the functions below, and copies and files, need of a thread's own memory.
std::int64_t own_memory(const Work& work, bool with_kernels);

/// Part k of n of something of `size`, [first, last), in units of `grain` but for the end.
struct Slice {
  std::int64_t first = 0, last = 0;
  std::int64_t size() const { return last - first; }
};
Slice slice(std::int64_t size, std::int64_t k, std::int64_t n, std::int64_t grain);

/// By stores that pass the caches, as the copy engine of a GPU does, so that the rate does not hang
/// on the size; both begin at a multiple of 64 bytes and have the same length.
void do_copy(std::span<const std::byte> from, std::span<std::byte> to);
void do_adam(const AdamStep& adam, Carving own, std::int64_t k, std::int64_t n, int threads = 1);
void do_cast(const Cast& cast, Carving own, std::int64_t k, std::int64_t n, int threads = 1);
/// The copies and sums that the members on this machine do, one after the other.
void do_collective(const Collective& collective, Carving own, std::int64_t k, std::int64_t n);
/// All FLOPs of a kernel as matrix products of its shape, in fp32 whatever its type, all bytes of
/// an element-wise one as a copy within 16 MiB, on one core.
void do_kernel(const Kernel& kernel, Carving own);

}  // namespace tidegate
