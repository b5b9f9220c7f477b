#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "calib/kernels/half.hpp"
#include "models/work.hpp"

/// Kernels of the CPU: what calib measures is what the engine runs. Each takes the number of
/// threads (OpenMP; one thread opens no parallel region) and has a plain twin in reference.hpp as
/// its specification.
///
/// Bits: except for gemm, results are the same for every number of threads and every instruction
/// set. Those of the element-wise kernels are also the same however an array is cut into parts;
/// squared_norm of parts, added up, differs from that of the whole by rounding in double.
///
/// Throws std::logic_error when sizes differ or a type has no cast. Arrays must not overlap.
namespace tidegate::cpu {

/// A register-only chain of multiply-adds, fused where the CPU has it; returns the FLOPs done by
/// all threads. Every operation adds 1 to its lane: `sum` is half of the FLOPs, exactly.
double fma_chain(std::int64_t rounds, int threads, double& sum);

/// Memory streams. read returns the sum of the bit patterns modulo 2^32; copy, fill and triad use
/// ordinary stores, which fetch the line that they write.
double read(std::span<const float> a, int threads);
void fill(std::span<float> a, float value, int threads);
void copy(std::span<const float> from, std::span<float> to, int threads);
void copy_streaming(std::span<const float> from, std::span<float> to,
                    int threads);  ///< non-temporal stores
void triad(std::span<const float> b, std::span<const float> c, float scale, std::span<float> a,
           int threads);

/// Conversion as half.hpp says.
void cast(std::span<const half> from, DType type, std::span<float> to, int threads);
void cast(std::span<const float> from, DType type, std::span<half> to, int threads);

/// AdamW (Loshchilov and Hutter 2019, decoupled weight decay; bias-corrected):
///   m = b1·m + (1-b1)·g;  v = b2·v + (1-b2)·g²
///   p = p·(1 - lr·decay) - lr · (m/(1-b1^t)) / (sqrt(v/(1-b2^t)) + eps)
/// in fp32; what depends on the step alone is worked out in double.
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

/// Sum of squares in double; false in `finite` when any is not finite.
double squared_norm(std::span<const float> a, bool& finite, int threads);

/// C[m,n] = A[m,k] B[k,n], row-major fp32, by the BLAS that the build found, else by plain loops.
/// The number of threads is one of the BLAS as a whole: callers at the same time pass the same.
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b, float* c,
          int threads);
/// "OpenBLAS 0.3.21 (Zen)"
const char* blas_name();
/// Empty, or the environment that makes the BLAS use this CPU, "OPENBLAS_CORETYPE=SkylakeX": before
/// 0.3.25 OpenBLAS takes its oldest kernels on a CPU that it does not know
/// (OpenMathLib/OpenBLAS#4267). The environment counts at the start of the program only.
std::string blas_remedy();

}  // namespace tidegate::cpu
