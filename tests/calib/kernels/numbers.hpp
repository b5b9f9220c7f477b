#pragma once

#include <cstdint>
#include <vector>

#include "calib/kernels/half.hpp"

/// Arrays to try the kernels on.
namespace tidegate {

/// Empty, around the widths of vectors and blocks, and long enough for several threads.
inline const std::vector<std::size_t> sizes = {0,  1,  3,  7,    8,    9,    15,   16,   17,
                                               31, 33, 63, 1000, 1023, 1024, 1025, 4097, 20011};

/// Uniform in [-1, 1).
std::vector<float> numbers(std::size_t n, std::uint32_t seed);
/// Any bit pattern: NaN, infinities and subnormal numbers among them; the first are chosen.
std::vector<float> patterns(std::size_t n, std::uint32_t seed);
std::vector<cpu::half> half_patterns(std::size_t n, std::uint32_t seed);

std::vector<std::uint32_t> bits_of(const std::vector<float>& a);

}  // namespace tidegate
