#include "calib/cuda/verify.hpp"

#include <algorithm>
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

TEST_CASE("a row of causal attention by hand", "[cuda]") {
  // Scores ln 4, ln 2 and 9: of the second query over two keys 2/3 and 1/3, nothing beyond.
  const std::vector<double> shares =
      causal_softmax(std::vector<double>{std::log(4.0), std::log(2.0), 9}, 1, 1);
  CHECK(shares[0] == Approx(2.0 / 3));
  CHECK(shares[1] == Approx(1.0 / 3));
  CHECK(shares[2] == 0);
  // A head of 4 numbers, factor 1/2: q_1 = (2 ln 2, 0, 0, 0), k_0 = (1, …), k_1 = 0, so that the
  // scores are 2 ln 2 and 0, the shares 2/3 and 1/3; values 3 and 6 make 2 + 2.
  const float two_ln_2 = 2 * std::log(2.0F);
  const auto q = packed<float>({0, 0, 0, 0, two_ln_2, 0, 0, 0});
  const auto k = packed<float>({1, 5, 5, 5, 0, 7, 7, 7});
  const auto v = packed<float>({3, 3, 0, 0, 6, 0, 0, 6});
  const std::vector<double> first = attention_row(q, k, v, DType::fp32, 4, 0);
  CHECK(first[0] == 3);
  CHECK(first[3] == 0);
  const std::vector<double> second = attention_row(q, k, v, DType::fp32, 4, 1);
  CHECK(second[0] == Approx(4));
  CHECK(second[1] == Approx(2));
  CHECK(second[3] == Approx(2));
}

TEST_CASE("attention in bf16 is within its tolerance, zeros and another row are not", "[cuda]") {
  constexpr std::size_t tokens = 512, dim = 64;
  const auto round = [](float x) {  // to bf16, nearest even
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000U;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  };
  const auto uniform_head = [&](std::uint32_t seed) {
    std::vector<float> values = numbers(tokens * dim, seed);
    for (float& x : values) x = round(x);
    return values;
  };
  const auto q = uniform_head(1), k = uniform_head(2), v = uniform_head(3);
  for (const std::size_t i : {std::size_t{0}, std::size_t{40}, tokens - 1}) {
    // As the kernels do: scores, probabilities and the result rounded.
    std::vector<double> scores;
    for (std::size_t j = 0; j <= i; ++j) {
      float sum = 0;
      for (std::size_t d = 0; d < dim; ++d) sum += q[i * dim + d] * k[j * dim + d];
      scores.push_back(static_cast<double>(round(sum)));
    }
    const std::vector<double> shares = causal_softmax(scores, i, 0.125);
    const auto exact = attention_row(packed(q), packed(k), packed(v), DType::fp32, dim, i);
    const auto before =
        attention_row(packed(q), packed(k), packed(v), DType::fp32, dim, i == 0 ? 1 : i / 2);
    double worst = 0, worst_of_zeros = 0, worst_of_other = 0;
    for (std::size_t d = 0; d < dim; ++d) {
      float out = 0;
      for (std::size_t j = 0; j <= i; ++j)
        out += round(static_cast<float>(shares[j])) * v[j * dim + d];
      worst = std::max(worst, std::abs(static_cast<double>(round(out)) - exact[d]));
      worst_of_zeros = std::max(worst_of_zeros, std::abs(exact[d]));
      worst_of_other = std::max(worst_of_other, std::abs(before[d] - exact[d]));
    }
    CHECK(worst <= attention_tolerance(i));
    CHECK(worst_of_zeros > attention_tolerance(i));
    CHECK(worst_of_other > attention_tolerance(i));
  }
}
