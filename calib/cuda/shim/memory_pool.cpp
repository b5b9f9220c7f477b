#include "calib/cuda/shim/memory_pool.hpp"

#include <limits>

#include <cuda_runtime_api.h>

#include "calib/cuda/shim/check.hpp"

namespace tidegate::cuda {
namespace {

CUmemPoolHandle_st* make_pool(int device) {
  const OnDevice here(device);
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypeNone;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  cudaMemPool_t pool = nullptr;
  TIDEGATE_CUDA(cudaMemPoolCreate(&pool, &properties));
  std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
  TIDEGATE_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  return pool;
}

}  // namespace

MemoryPool::MemoryPool(int device) : stream_(device), pool_(make_pool(device)) {}

std::byte* MemoryPool::allocate(std::size_t bytes) {
  const OnDevice here(stream_.device());
  void* at = nullptr;
  TIDEGATE_CUDA(cudaMallocFromPoolAsync(&at, bytes, pool_.get(), stream_.handle()));
  stream_.wait();
  return static_cast<std::byte*>(at);
}

void MemoryPool::free(std::byte* at) noexcept {
  if (at != nullptr) cudaFreeAsync(at, stream_.handle());
}

void MemoryPool::admit(int gpu) const {
  cudaMemAccessDesc access = {};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = gpu;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  TIDEGATE_CUDA(cudaMemPoolSetAccess(pool_.get(), &access, 1));
}

std::int64_t MemoryPool::peak() const {
  std::uint64_t bytes = 0;
  TIDEGATE_CUDA(cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrUsedMemHigh, &bytes));
  return static_cast<std::int64_t>(bytes);
}

void MemoryPool::Destroy::operator()(CUmemPoolHandle_st* pool) const { cudaMemPoolDestroy(pool); }

void pin_pages(void* at, std::size_t bytes) {
  TIDEGATE_CUDA(cudaHostRegister(at, bytes, cudaHostRegisterPortable));
}

void unpin_pages(void* at) noexcept { cudaHostUnregister(at); }

}  // namespace tidegate::cuda
