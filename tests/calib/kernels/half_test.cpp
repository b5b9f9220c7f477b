#include "calib/kernels/half.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"

using namespace tidegate::cpu;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// The value of bits with `places` fraction bits and the given bias, by the formula of IEEE 754.
double value_of(half bits, int places, int bias) {
  const int fraction = bits & ((1 << places) - 1), exponent = (bits & 0x7fff) >> places;
  const double size = exponent == 0
                          ? std::ldexp(fraction, 1 - bias - places)
                          : std::ldexp(fraction + (1 << places), exponent - bias - places);
  return (bits & 0x8000) != 0 ? -size : size;
}

// Between each pair of neighbours: below the middle down, above it up, in the middle to even.
template <class Narrow, class Widen>
int wrongly_rounded(half last_finite, Narrow narrow, Widen widen) {
  int wrong = 0;
  for (half low = 0; low < last_finite; ++low) {
    const auto high = static_cast<half>(low + 1), even = low % 2 == 0 ? low : high;
    const double middle = (double{widen(low)} + double{widen(high)}) / 2;
    const auto at = static_cast<float>(middle);
    wrong += double{at} != middle;
    wrong += narrow(at) != even || narrow(-at) != (even | 0x8000);
    wrong += narrow(std::nextafter(at, 0.0F)) != low;
    wrong += narrow(std::nextafter(at, infinity)) != high;
    wrong += narrow(widen(low)) != low;
  }
  return wrong;
}

}  // namespace

TEST_CASE("every finite number of 16 bits has the value that its format defines", "[half]") {
  int wrong = 0;
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<half>(i);
    if ((bits & 0x7c00) != 0x7c00) wrong += double{from_fp16(bits)} != value_of(bits, 10, 15);
    if ((bits & 0x7f80) != 0x7f80) wrong += double{from_bf16(bits)} != value_of(bits, 7, 127);
  }
  CHECK(wrong == 0);
  CHECK(std::signbit(from_fp16(0x8000)));
  CHECK(from_fp16(0x3c00) == 1.0F);
  CHECK(from_bf16(0x3f80) == 1.0F);
}

TEST_CASE("conversion to 16 bits rounds to nearest, ties to even", "[half]") {
  CHECK(wrongly_rounded(0x7bff, to_fp16, from_fp16) == 0);
  CHECK(wrongly_rounded(0x7f7f, to_bf16, from_bf16) == 0);
}

TEST_CASE("what is too large for 16 bits becomes infinite, from the middle on", "[half]") {
  // The largest fp16 is 65504; the next would be 65536, and 65520 between them is a tie to even.
  CHECK(to_fp16(65519.996F) == 0x7bff);
  CHECK(to_fp16(65520.0F) == 0x7c00);
  CHECK(to_fp16(-infinity) == 0xfc00);
  CHECK(to_fp16(std::numeric_limits<float>::max()) == 0x7c00);
  CHECK(to_bf16(std::bit_cast<float>(0x7f7f7fffU)) == 0x7f7f);
  CHECK(to_bf16(std::bit_cast<float>(0x7f7f8000U)) == 0x7f80);
  CHECK(to_bf16(-infinity) == 0xff80);
  CHECK(from_fp16(0xfc00) == -infinity);
  CHECK(from_bf16(0x7f80) == infinity);
}

TEST_CASE("a NaN stays a NaN, with its sign, and becomes quiet", "[half]") {
  // Only a bit that is lost tells this NaN from infinity.
  const float signalling = std::bit_cast<float>(0xff800001U);
  CHECK(to_fp16(signalling) == 0xfe00);
  CHECK(to_bf16(signalling) == 0xffc0);
  CHECK(to_fp16(std::bit_cast<float>(0x7fffe000U)) == 0x7fff);
  CHECK(to_bf16(std::bit_cast<float>(0x7fffffffU)) == 0x7fff);  // would round to -0 as a number
  CHECK(std::isnan(from_fp16(0x7c01)));
  CHECK(std::isnan(from_bf16(0x7f81)));
}
