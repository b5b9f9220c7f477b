#include "validate/cuda/cuda_training.hpp"

#include <map>
#include <mutex>

#include <fmt/core.h>

#include "calib/cuda/facts.hpp"
#include "calib/cuda/shim/cublas_lt.hpp"
#include "calib/cuda/shim/memory_pool.hpp"
#include "calib/cuda/station.hpp"
#include "models/base/error.hpp"
#include "validate/cuda/train_kernels.hpp"
#include "validate/train/kernels/kernel_backend.hpp"

namespace tidegate {
namespace {

class CudaKernels final : public train::KernelDevice {
 public:
  explicit CudaKernels(const cuda::GpuFacts& gpu)
      : index_(prepared(gpu.index)), name_(gpu.name), stream_(index_), pool_(index_) {}

  std::string name() const override { return name_; }
  std::string products_text(DType type) const override {
    return fmt::format("in {} with sums in fp32 by cuBLASLt {} on {}", tidegate::name_of(type),
                       cuda::cublas_lt_version(), name_);
  }

  std::byte* allocate(std::int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    return pool_.allocate(static_cast<std::size_t>(bytes));
  }
  // Works that use it may be under way where an error ended their caller early.
  void free(std::byte* at) noexcept override {
    const std::lock_guard lock(mutex_);
    try {
      stream_.wait();
    } catch (const MachineError&) {  // the GPU does nothing any more
    }
    pool_.free(at);
  }
  void put(std::span<const std::byte> from, std::byte* to) override {
    const std::lock_guard lock(mutex_);
    const cuda::OnDevice here(index_);
    cuda::copy(stream_, to, from.data(), from.size());
    stream_.wait();  // pageable memory, which is the caller's again on return
  }
  void get(const std::byte* from, std::span<std::byte> to) override {
    const std::lock_guard lock(mutex_);
    const cuda::OnDevice here(index_);
    cuda::copy(stream_, to.data(), from, to.size());
    stream_.wait();
  }
  void launch(const train::kernels::Kernel& kernel, std::int64_t count) override {
    const std::lock_guard lock(mutex_);
    const cuda::OnDevice here(index_);
    cuda::launch(stream_, kernel, count);
  }
  void multiply(const cuda::Product& product, const void* a, const void* b, float* c) override {
    const std::lock_guard lock(mutex_);
    const cuda::OnDevice here(index_);
    constexpr int best = 0;
    planned(product).enqueue(stream_, best, a, b, c);
  }

 private:
  int index_;
  std::string name_;
  std::mutex mutex_;
  cuda::Stream stream_;
  cuda::MemoryPool pool_;
  std::map<cuda::Product, cuda::Matmul> products_;

  static int prepared(int device) {
    cuda::sleep_while_waiting(device);
    return device;
  }
  // Asked for once: the same algorithm ever after.
  const cuda::Matmul& planned(const cuda::Product& product) {
    const auto known = products_.find(product);
    if (known != products_.end()) return known->second;
    return products_.emplace(product, cuda::Matmul(index_, product, 1)).first->second;
  }
};

}  // namespace

std::unique_ptr<train::Backend> cuda_training() {
  const char* why_none = "";
  if (cuda::device_count(&why_none) == 0) throw MachineError(std::string("no GPU: ") + why_none);
  if (const std::string why = cuda::why_no_cublas_lt(); !why.empty()) throw MachineError(why);
  return std::make_unique<train::KernelBackend>(
      std::make_unique<CudaKernels>(cuda::gpu_facts().front()));
}

}  // namespace tidegate
