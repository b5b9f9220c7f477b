#include "calib/cuda/verify.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include "calib/cuda/values.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::cuda;

namespace {

template <class T>
std::vector<std::byte> packed(const std::vector<T>& values) {
  std::vector<std::byte> data(values.size() * sizeof(T));
  std::memcpy(data.data(), values.data(), data.size());
  return data;
}

double one(DType type, std::uint16_t bits) {
  if (type == DType::fp8)
    return decode(packed<std::uint8_t>({static_cast<std::uint8_t>(bits)}), type, 0);
  return decode(packed<std::uint16_t>({bits}), type, 0);
}

std::vector<float> numbers(std::size_t n, std::uint32_t seed) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = uniform(i, seed);
  return values;
}

}  // namespace

TEST_CASE("small floats are decoded bit by bit", "[cuda]") {
  CHECK(one(DType::bf16, 0x3F80) == 1);
  CHECK(one(DType::bf16, 0xC000) == -2);
  CHECK(one(DType::bf16, 0x3FC0) == 1.5);
  CHECK(one(DType::fp16, 0x3C00) == 1);
  CHECK(one(DType::fp16, 0x7BFF) == 65504);
  CHECK(one(DType::fp16, 0x0001) == 0x1p-24);
  CHECK(one(DType::fp16, 0xFC00) == -INFINITY);
  CHECK(std::isnan(one(DType::fp16, 0x7E00)));
  CHECK(one(DType::fp8, 0x38) == 1);       // exponent 7 is the bias
  CHECK(one(DType::fp8, 0x7E) == 448);     // 1.75 · 2^8
  CHECK(one(DType::fp8, 0x01) == 0x1p-9);  // 1/8 · 2^-6
  CHECK(one(DType::fp8, 0x88) == -0x1p-6);
  CHECK(std::isnan(one(DType::fp8, 0xFF)));
}

TEST_CASE("a dot product keeps what its error bound needs", "[cuda]") {
  // 4 - 10 + 18 = 12; 4 + 10 + 18 = 32; partial sums 4, -6, 12.
  const Dot d = dot(packed<float>({1, 2, 3}), packed<float>({4, -5, 6}), DType::fp32);
  CHECK(d.value == 12);
  CHECK(d.magnitude == 32);
  CHECK(d.largest == 12);
  CHECK(d.length == 3);
  // 8 · 2^-23 · sqrt(3) · 12, and of a bf16 result 2^-8 · 12 more.
  CHECK(tolerance(d, DType::fp32, DType::fp32) ==
        Approx(8 * 0x1p-23 * std::sqrt(3.0) * 12 + 0x1p-24 * 12));
  CHECK(tolerance(d, DType::bf16, DType::bf16) ==
        Approx(8 * 0x1p-23 * std::sqrt(3.0) * 12 + 12.0 / 256));
}

TEST_CASE("fp32 sums agree with the exact one, wrong rows and stale results do not", "[cuda]") {
  constexpr std::size_t k = 4096;
  const auto a = numbers(k, 1), b = numbers(k, 2), other = numbers(k, 3);
  const Dot exact = dot(packed(a), packed(b), DType::fp32);
  float forward = 0, backward = 0;
  for (std::size_t i = 0; i < k; ++i) {
    forward += a[i] * b[i];
    backward += a[k - 1 - i] * b[k - 1 - i];
  }
  CHECK(agrees(static_cast<double>(forward), exact, DType::fp32, DType::fp32));
  CHECK(agrees(static_cast<double>(backward), exact, DType::fp32, DType::fp32));
  CHECK(looks_uniform(exact));
  const Dot wrong = dot(packed(a), packed(other), DType::fp32);
  CHECK_FALSE(agrees(wrong.value, exact, DType::fp32, DType::fp32));
  CHECK_FALSE(agrees(wrong.value, exact, DType::bf16, DType::bf16));
  CHECK_FALSE(agrees(0, exact, DType::bf16, DType::bf16));
  CHECK_FALSE(agrees(std::nan(""), exact, DType::bf16, DType::bf16));
}

TEST_CASE("operands that were never filled are noticed", "[cuda]") {
  const std::vector<float> zeros(512), ones(512, 1);
  CHECK_FALSE(looks_uniform(dot(packed(zeros), packed(zeros), DType::fp32)));
  CHECK_FALSE(looks_uniform(dot(packed(ones), packed(ones), DType::fp32)));
}

TEST_CASE("uniform numbers fill their interval and differ by seed", "[cuda]") {
  double sum = 0, products = 0;
  constexpr std::size_t n = 100000;
  for (std::size_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(uniform(i, 5)), y = static_cast<double>(uniform(i, 6));
    REQUIRE((x >= -1 && x < 1));
    sum += x;
    products += x * y;
  }
  // Standard deviations of the means: sqrt(1/3)/316 = 0.0018 and (1/3)/316 = 0.0011; five of each.
  CHECK(std::abs(sum / n) < 0.009);
  CHECK(std::abs(products / n) < 0.006);
  // Beyond 2^32 the stream does not repeat.
  CHECK(word(1, 5) != word(1 + (std::uint64_t{1} << 32), 5));
}

TEST_CASE("sums of the ranks' shares are exact in fp32", "[cuda]") {
  for (std::uint64_t i = 0; i < 1000; ++i) {
    float sum = 0;
    for (int rank = 7; rank >= 0; --rank) sum += share(i, rank);
    CHECK(sum == 36 * share(i, 0));  // 1 + 2 + … + 8
  }
}
