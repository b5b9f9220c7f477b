#pragma once

#include <cstdint>

#include "validate/train/kernels/kernel.hpp"

struct CUstream_st;

/// The launch of training's kernels. nvcc's host pass reads this.
namespace tidegate::cuda {

/// Enqueues on a stream of the current GPU: a thread for each i. Throws MachineError when the
/// launch is refused.
void launch(CUstream_st* stream, const train::kernels::Kernel& kernel, std::int64_t count);

}  // namespace tidegate::cuda
