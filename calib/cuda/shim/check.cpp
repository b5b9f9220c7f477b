#include "calib/cuda/shim/check.hpp"

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate::cuda {

void check(int code, const char* call) {
  if (code == cudaSuccess) return;
  const auto error = static_cast<cudaError_t>(code);
  cudaGetLastError();
  throw MachineError(fmt::format("{}: error {} ({}): {}", call, code, cudaGetErrorName(error),
                                 cudaGetErrorString(error)));
}

}  // namespace tidegate::cuda
