#include "calib/cuda/benches.hpp"

#include <array>

namespace tidegate::cuda {
std::span<const calib::BenchEntry> bench_table() {
  static constexpr std::array<calib::BenchEntry, 11> table{{
      {"gpu_gemm", "matrix products by cuBLASLt", why_no_gemm, make_gemm},
      {"gpu_memory", "memory-bound kernels: triad, norm, gelu, adam", why_no_memory, make_memory},
      {"gpu_attention", "causal attention with scores in memory, by cuBLASLt and a softmax",
       why_no_attention, make_attention},
      {"gpu_launch", "launches, events and graphs", why_no_launch, make_launch},
      {"gpu_copies", "copies between host and GPU", why_no_copies, make_copies},
      {"gpu_together", "both directions, and all GPUs, at once", why_no_together, make_together},
      {"gpu_interference", "copies beside matrix products", why_no_interference, make_interference},
      {"gpu_pin", "page-locking host memory", why_no_pin, make_pin},
      {"gpu_peer", "copies between GPUs", why_no_peer, make_peer},
      {"gpu_collectives", "NCCL collectives over the local GPUs", why_no_collectives,
       make_collectives},
      {"gpu_storage", "files to and from GPU memory by cuFile", why_no_gds, make_gds},
  }};
  return table;
}

}  // namespace tidegate::cuda
