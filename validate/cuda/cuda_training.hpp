#pragma once

#include <memory>

#include "validate/train/backend.hpp"

namespace tidegate {

/// A training step's arithmetic on the first GPU of this machine: products by cuBLASLt (16 bits and
/// fp32 without TF32, sums in fp32), the kernels of validate/train/kernels for the rest. For
/// correctness, not for speed: every primitive brings its operands to the GPU and its results back.
///
/// From any thread; works of all threads run on one stream, one after the other. The process must
/// not fork once it has been made: CUDA does not survive that.
///
/// Throws MachineError when there is no GPU or no cuBLASLt, with the reason. This has not run on a
/// GPU yet.
std::unique_ptr<train::Backend> cuda_training();

}  // namespace tidegate
