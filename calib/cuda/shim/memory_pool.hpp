#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "calib/cuda/shim/handles.hpp"

struct CUmemPoolHandle_st;

namespace tidegate::cuda {

/// Memory of a GPU by the buffer: CUDA's stream-ordered allocator on a pool of its own, which keeps
/// what is given back and joins it from pages, so that gaps between buffers cost nothing.
class MemoryPool {
 public:
  explicit MemoryPool(int device);
  /// Usable on every stream when it returns. Throws MachineError when no memory is left.
  std::byte* allocate(std::size_t bytes);
  /// No work that uses it may be under way. Never throws.
  void free(std::byte* at) noexcept;
  /// Lets another GPU copy to and from this memory straight. Throws MachineError where it cannot.
  void admit(int gpu) const;
  /// Most bytes that were allocated at the same time.
  std::int64_t peak() const;

 private:
  struct Destroy {
    void operator()(CUmemPoolHandle_st* pool) const;
  };
  Stream stream_;
  std::unique_ptr<CUmemPoolHandle_st, Destroy> pool_;
};

/// Page-locks memory of the host for every GPU, and lets it go.
void pin_pages(void* at, std::size_t bytes);
void unpin_pages(void* at) noexcept;

}  // namespace tidegate::cuda
