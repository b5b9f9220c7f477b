#pragma once

/// The one check of CUDA calls: a failure becomes MachineError with the call, the code and its
/// text.
namespace tidegate::cuda {

/// `code`: a cudaError_t. Clears the runtime's remembered error, so that the next call is judged by
/// itself.
void check(int code, const char* call);

}  // namespace tidegate::cuda

#define TIDEGATE_CUDA(call) ::tidegate::cuda::check(static_cast<int>(call), #call)
