#pragma once

#include <cstddef>
#include <cstdint>

#include "calib/kernels/half.hpp"

/// The kernels over one contiguous range by one thread, compiled once per instruction set
/// (slices.inc) and chosen at run time. Every set gives the same bits: each element takes the same
/// IEEE operations in the same order, nothing is contracted, and the ends of a range take the same
/// operations as its middle.
namespace tidegate::cpu {

/// AdamOptions with what depends on the step worked out, in double, then rounded once.
struct AdamStep {
  float scale;         ///< x = scale·g
  float beta1, rest1;  ///< m = beta1·m + rest1·x, rest1 = 1 - beta1
  float beta2, rest2;  ///< v = beta2·v + (rest2·x)·x
  float keep;          ///< 1 - rate·decay
  float rate;          ///< rate / (1 - beta1^t)
  float root;          ///< 1 / sqrt(1 - beta2^t)
  float epsilon;       ///< p = keep·p - (rate·m) / (root·sqrt(v) + epsilon)
};

struct AdamOptions;
/// What every implementation of a step goes by (kernels.hpp).
AdamStep step_of(const AdamOptions& options);

/// Elements whose squares are added up before they meet others: the sum over an array is that of
/// its blocks in order, whoever summed which.
inline constexpr std::size_t norm_block = 4096;

struct Slices {
  const char* name;        ///< "baseline", "avx2", "avx512"
  std::int64_t width;      ///< fp32 numbers of a vector
  std::int64_t fma_lanes;  ///< numbers that one round of `fma` advances
  /// x = x·factor + addend on every lane, `rounds` times; returns what the lanes grew by, summed,
  /// for factor 1.
  double (*fma)(std::int64_t rounds, float factor, float addend);
  /// Sum of the bit patterns modulo 2^32.
  std::uint32_t (*read)(const float* a, std::size_t n);
  void (*fill)(float* a, float value, std::size_t n);
  void (*copy)(const float* from, float* to, std::size_t n);
  void (*copy_streaming)(const float* from, float* to, std::size_t n);
  void (*triad)(const float* b, const float* c, float scale, float* a, std::size_t n);
  void (*from_bf16)(const half* from, float* to, std::size_t n);
  void (*from_fp16)(const half* from, float* to, std::size_t n);
  void (*to_bf16)(const float* from, half* to, std::size_t n);
  void (*to_fp16)(const float* from, half* to, std::size_t n);
  void (*adam)(float* p, float* m, float* v, const float* g, std::size_t n, const AdamStep& step);
  /// Sum of squares of at most norm_block numbers.
  double (*squares)(const float* a, std::size_t n);
  /// x_i = exp(factor·(x_i - max)) / sum over n >= 1 numbers, factor >= 0, in place. The
  /// exponential is within 3e-7 of its value, that of less than -87 is taken for that of -87; the
  /// sum is of sixteen by index modulo 16, folded in halves.
  void (*softmax)(float* x, std::size_t n, float factor);
};

extern const Slices baseline_slices, avx2_slices, avx512_slices;

/// The best that this CPU runs.
const Slices& slices();
/// The n-th set that this CPU runs, the baseline first; null beyond the last.
const Slices* slices_of_cpu(int n);

}  // namespace tidegate::cpu
