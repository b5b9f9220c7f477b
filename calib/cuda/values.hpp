#pragma once

#include <cstdint>

/// The data of GPU benchmarks: a value for each place, the same on host and device, so that
/// whatever arrives anywhere can be checked without a second copy. Kernels and sources both include
/// this.
namespace tidegate::cuda {

/// Mixes 32 bits (the finalizer of MurmurHash3, Appleby, public domain).
constexpr std::uint32_t scramble(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85EBCA6BU;
  x ^= x >> 13;
  x *= 0xC2B2AE35U;
  x ^= x >> 16;
  return x;
}

/// The i-th word of the stream `seed`.
constexpr std::uint32_t word(std::uint64_t i, std::uint32_t seed) {
  return scramble(static_cast<std::uint32_t>(i) ^
                  scramble(static_cast<std::uint32_t>(i >> 32) + 0x9E3779B9U * (seed + 1)));
}

/// The i-th number of the stream, in [-1, 1), a multiple of 2^-23 and so exact in fp32. Uniform
/// data draw the power that training data draw; zeros would make a GEMM look some 15 % faster.
constexpr float uniform(std::uint64_t i, std::uint32_t seed) {
  return static_cast<float>(static_cast<std::int32_t>(word(i, seed) >> 8) - (1 << 23)) * 0x1p-23F;
}

/// What rank `rank` sends at place i of a collective: whole numbers up to 255 · (rank + 1), so that
/// sums over up to 256 ranks are exact in fp32.
constexpr float share(std::uint64_t i, int rank) {
  return static_cast<float>(static_cast<int>(word(i, 0) & 255U) * (rank + 1));
}

}  // namespace tidegate::cuda
