#include "validate/cuda/train_kernels.hpp"

#include "calib/cuda/shim/check.hpp"

namespace tidegate::cuda {
namespace {

template <class Kernel>
__global__ void for_each(Kernel kernel, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) kernel(i);
}

}  // namespace

void launch(CUstream_st* stream, const train::kernels::Kernel& kernel, std::int64_t count) {
  constexpr unsigned threads = 128;
  const auto blocks = static_cast<unsigned>((count + threads - 1) / threads);
  std::visit([&](const auto& one) { for_each<<<blocks, threads, 0, stream>>>(one, count); },
             kernel);
  TIDEGATE_CUDA(cudaGetLastError());
}

}  // namespace tidegate::cuda
