#pragma once

#include <bit>
#include <cstdint>

/// Numbers as a type of 16 bits stores them, on the host and on a GPU: what calib/kernels/half.hpp
/// specifies. The headers of kernels include none of ours but each other, because nvcc reads them.
#ifdef __CUDACC__
#define TIDEGATE_KERNEL __host__ __device__
#else
#define TIDEGATE_KERNEL
#endif

namespace tidegate::train::kernels {

enum class Format : std::uint8_t { fp32, bf16, fp16 };

TIDEGATE_KERNEL inline std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  const std::uint32_t to_even = 0x7FFFU + ((bits >> 16) & 1U);
  return static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40U : (bits + to_even) >> 16);
}

/// The significand, shifted to the places that fp16 has at its size, and rounded there.
TIDEGATE_KERNEL inline std::uint16_t fp16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U, rest = bits & 0x7FFFFFFFU;
  if (rest > 0x7F800000U)
    return static_cast<std::uint16_t>(sign | 0x7E00U | ((rest >> 13) & 0x3FFU));
  const int exponent = static_cast<int>(rest >> 23) - 127;
  if (exponent > 15) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (exponent < -25) return static_cast<std::uint16_t>(sign);  // below half of 2^-24
  const bool is_normal = exponent >= -14;
  const int shift = is_normal ? 13 : -1 - exponent;  // the last place kept is 2^-24 at least
  const std::uint32_t significand = (rest & 0x7FFFFFU) | 0x800000U;
  const std::uint32_t kept = significand >> shift, dropped = significand & ((1U << shift) - 1U),
                      half = 1U << (shift - 1);
  const bool goes_up = dropped > half || (dropped == half && (kept & 1U) != 0);
  // A normal significand carries its leading one into the exponent, one less.
  const std::uint32_t base = is_normal ? static_cast<std::uint32_t>(exponent + 14) << 10 : 0;
  return static_cast<std::uint16_t>(sign | (base + kept + (goes_up ? 1U : 0U)));
}

TIDEGATE_KERNEL inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

TIDEGATE_KERNEL inline float from_fp16(std::uint16_t bits) {
  const std::uint32_t exponent = (bits >> 10) & 0x1FU, fraction = bits & 0x3FFU;
  const bool is_negative = (bits & 0x8000U) != 0;
  if (exponent == 0) {  // a whole number of places of 2^-24
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return is_negative ? -size : size;
  }
  const std::uint32_t sign = is_negative ? 0x80000000U : 0;
  const bool is_special = exponent == 0x1FU;
  const std::uint32_t quiet = is_special && fraction != 0 ? 0x400000U : 0;
  const std::uint32_t wide = is_special ? 255U : exponent + 112U;
  return std::bit_cast<float>(sign | (wide << 23) | quiet | (fraction << 13));
}

TIDEGATE_KERNEL inline float rounded(float value, Format format) {
  if (format == Format::bf16) return from_bf16(bf16_of(value));
  return format == Format::fp16 ? from_fp16(fp16_of(value)) : value;
}

}  // namespace tidegate::train::kernels
