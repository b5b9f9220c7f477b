#pragma once

#include "validate/engine/device.hpp"

namespace tidegate {

/// The GPUs of this machine, in CUDA's order. Their memory is CUDA's stream-ordered allocator,
/// copies are those of the copy engines, kernels those that calibration measures (calib/cuda):
///
///   Gemm         cuBLASLt, the heuristic's first choice
///   Attention    eager: the scores of all keys, their causal softmax, the sums over values; as
///                many heads at a time as fit into gpu_works.hpp's room; backward as often as it
///                has FLOPs
///   Elementwise  triads that move its bytes
///   Copy         between GPUs peer copies, straight where the machine lets them
///   Collective   NCCL, fp32 and summed, out of place (cuda_teams.hpp)
///   FileIo       to and from GPU memory cuFile (cuda_files.hpp)
///
/// Throws MachineError when there is none, with the reason. This has not run on a GPU yet.
Devices cuda_devices();

}  // namespace tidegate
