#include "calib/kernels/half.hpp"

#include <bit>
#include <cmath>

namespace tidegate::cpu {
namespace {

constexpr std::uint32_t infinity = 0x7f800000, magnitude = 0x7fffffff;

half narrow(std::uint32_t bits) { return static_cast<half>(bits); }

}  // namespace

half to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & magnitude) > infinity) return narrow(bits >> 16 | 0x40);
  // Half of the last kept place, less one where the kept part is even: ties go to even. The carry
  // into the exponent is what rounding up to the next binade, or to infinity, is.
  return narrow((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

half to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000, rest = bits & magnitude;
  if (rest > infinity) return narrow(sign | 0x7e00 | (rest >> 13 & 0x3ff));
  if (rest >= 0x47800000) return narrow(sign | 0x7c00);  // 2^16 and more, infinity
  if (rest < 0x38800000) {
    // Below 2^-14 the places are 2^-24 apart: scaled by 2^24 they are the integers, and adding
    // 2^23 leaves the nearest integer in the low bits, ties to even.
    const float places = std::bit_cast<float>(rest) * 0x1p24F + 0x1p23F;
    return narrow(sign | (std::bit_cast<std::uint32_t>(places) & 0x7ff));
  }
  const std::uint32_t rebased = rest - (112U << 23);  // exponent bias 127 becomes 15
  return narrow(sign | (rebased + 0xfff + (rebased >> 13 & 1)) >> 13);
}

float from_bf16(half bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

float from_fp16(half bits) {
  const std::uint32_t sign = (std::uint32_t{bits} & 0x8000) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  if (exponent == 0x1f) {
    const std::uint32_t quiet = fraction != 0 ? 0x400000 : 0;
    return std::bit_cast<float>(sign | infinity | quiet | fraction << 13);
  }
  if (exponent == 0) {
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(size));
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

}  // namespace tidegate::cpu
