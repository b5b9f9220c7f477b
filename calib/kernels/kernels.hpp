#pragma once

#include <cstdint>
#include <span>

#include "models/work.hpp"

/// Kernels of the CPU: what calib measures is what the engine runs. Each takes the number of
/// threads (OpenMP), has a plain twin in reference.hpp as its specification, and returns what
/// cannot be optimised away.
namespace tidegate::cpu {

using half = std::uint16_t;  ///< bits of a bf16 or fp16 number

/// Floating-point operations of a register-only chain of fused multiply-adds; returns the FLOPs
/// done, `sum` depends on all of them.
double fma_chain(std::int64_t rounds, int threads, double& sum);

/// Memory streams. Each returns a checksum of what it read or wrote.
double read(std::span<const float> a, int threads);
void fill(std::span<float> a, float value, int threads);
void copy(std::span<const float> from, std::span<float> to, int threads);
void copy_streaming(std::span<const float> from, std::span<float> to,
                    int threads);  ///< non-temporal stores
void triad(std::span<const float> b, std::span<const float> c, float scale, std::span<float> a,
           int threads);

/// Conversion, round to nearest even.
void cast(std::span<const half> from, DType type, std::span<float> to, int threads);
void cast(std::span<const float> from, DType type, std::span<half> to, int threads);

/// AdamW (Loshchilov and Hutter 2019, decoupled weight decay; bias-corrected):
///   m = b1·m + (1-b1)·g;  v = b2·v + (1-b2)·g²
///   p = p·(1 - lr·decay) - lr · (m/(1-b1^t)) / (sqrt(v/(1-b2^t)) + eps)
struct AdamOptions {
  float rate = 1e-3F, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F, decay = 0.01F;
  std::int64_t step = 1;
  float scale = 1;  ///< gradients are multiplied by it first (unscaling, clipping)
};
/// parameters, first and second moment, gradient: [n] fp32.
void adam(std::span<float> parameters, std::span<float> first, std::span<float> second,
          std::span<const float> gradient, const AdamOptions& options, int threads);
/// Gradient of 16 bits, and the new parameters written in 16 bits as well unless `out` is empty.
void adam(std::span<float> parameters, std::span<float> first, std::span<float> second,
          std::span<const half> gradient, DType type, std::span<half> out,
          const AdamOptions& options, int threads);

/// Sum of squares; false in `finite` when any is not finite.
double squared_norm(std::span<const float> a, bool& finite, int threads);

/// C[m,n] = A[m,k] B[k,n], row-major fp32, by the BLAS that the build found.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* c,
          int threads);
/// "OpenBLAS 0.3.21 (Zen)"
const char* blas_name();

}  // namespace tidegate::cpu
