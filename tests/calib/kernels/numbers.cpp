#include "tests/calib/kernels/numbers.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <random>

namespace tidegate {

std::vector<float> numbers(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> a(n);
  for (float& x : a) x = static_cast<float>(random()) * 0x1p-31F - 1.0F;
  return a;
}

std::vector<float> patterns(std::size_t n, std::uint32_t seed) {
  using limits = std::numeric_limits<float>;
  std::mt19937 random(seed);
  std::vector<float> a(n);
  for (float& x : a) x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  const std::vector<float> chosen = {0.0F,
                                     -0.0F,
                                     limits::infinity(),
                                     -limits::infinity(),
                                     std::bit_cast<float>(0x7f800001U),  // signalling
                                     std::bit_cast<float>(0xffffffffU),
                                     limits::denorm_min(),
                                     limits::max(),
                                     limits::min(),
                                     65504.0F,
                                     65520.0F,
                                     -65519.0F,
                                     0x1p-25F,
                                     0x1.8p-24F,
                                     0x1p-14F};
  std::copy_n(chosen.begin(), std::min(n, chosen.size()), a.begin());
  return a;
}

std::vector<cpu::half> half_patterns(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<cpu::half> a(n);
  for (cpu::half& x : a) x = static_cast<cpu::half>(random());
  return a;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& a) {
  std::vector<std::uint32_t> bits(a.size());
  std::ranges::transform(a, bits.begin(), [](float x) { return std::bit_cast<std::uint32_t>(x); });
  return bits;
}

}  // namespace tidegate
