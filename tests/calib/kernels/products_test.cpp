#include "calib/kernels/products.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "calib/kernels/reference.hpp"
#include "calib/kernels/slices.hpp"
#include "tests/calib/kernels/numbers.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using cpu::half;

namespace {

// Whole numbers up to 8: exact as bf16 and fp16, and sums of 130 products stay below 2^24, so that
// they are exact in any order.
std::vector<float> whole(std::int64_t n, std::uint32_t key) {
  std::vector<float> all = numbers(static_cast<std::size_t>(n), key);
  for (float& v : all) v = std::round(v * 8);
  return all;
}

std::vector<half> narrow(const std::vector<float>& a, DType type) {
  std::vector<half> all(a.size());
  cpu::reference::cast(a, type, all);
  return all;
}

std::vector<cpu::Product> all_layouts(std::int64_t m, std::int64_t n, std::int64_t k) {
  std::vector<cpu::Product> all;
  for (int i = 0; i < 8; ++i) all.push_back({m, n, k, (i & 1) != 0, (i & 2) != 0, (i & 4) != 0});
  return all;
}

// Causal attention in double.
std::vector<double> exact_attention(const cpu::HeadsOfAttention& s, const std::vector<float>& q,
                                    const std::vector<float>& k, const std::vector<float>& v) {
  std::vector<double> out(q.size());
  const auto at = [&s](std::int64_t head, std::int64_t token, std::int64_t d) {
    return static_cast<std::size_t>((head * s.tokens + token) * s.dim + d);
  };
  for (std::int64_t h = 0; h < s.heads; ++h) {
    for (std::int64_t i = 0; i < s.tokens; ++i) {
      std::vector<double> p;
      double sum = 0;
      for (std::int64_t j = 0; j <= i; ++j) {
        double score = 0;
        for (std::int64_t d = 0; d < s.dim; ++d)
          score += double{q[at(h, i, d)]} * double{k[at(h, j, d)]};
        p.push_back(std::exp(score / std::sqrt(static_cast<double>(s.dim))));
        sum += p.back();
      }
      for (std::int64_t j = 0; j <= i; ++j) {
        for (std::int64_t d = 0; d < s.dim; ++d)
          out[at(h, i, d)] += p[static_cast<std::size_t>(j)] / sum * double{v[at(h, j, d)]};
      }
    }
  }
  return out;
}

double largest_difference(const std::vector<float>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double{a[i]} - b[i]));
  return most;
}

}  // namespace

TEST_CASE("a product by hand, with each operand transposed and added", "[products]") {
  // A = [1 2; 3 4], B = [5 6; 7 8]: AB = [19 22; 43 50], A'B = [26 30; 38 44],
  // AB' = [17 23; 39 53].
  const std::vector<float> a = {1, 2, 3, 4}, b = {5, 6, 7, 8};
  std::vector<float> c(4, 100);
  cpu::multiply({.m = 2, .n = 2, .k = 2}, a.data(), b.data(), c.data(), 1);
  CHECK(c == std::vector<float>{19, 22, 43, 50});
  cpu::multiply({.m = 2, .n = 2, .k = 2, .a_is_transposed = true}, a.data(), b.data(), c.data(), 1);
  CHECK(c == std::vector<float>{26, 30, 38, 44});
  cpu::multiply({.m = 2, .n = 2, .k = 2, .b_is_transposed = true, .adds = true}, a.data(), b.data(),
                c.data(), 1);
  CHECK(c == std::vector<float>{43, 53, 77, 97});
}

TEST_CASE("products in fp32 are those of plain loops in every layout", "[products]") {
  const std::vector<float> a = whole(67 * 130, 1), b = whole(130 * 45, 2), c = whole(67 * 45, 3);
  for (const cpu::Product& p : all_layouts(67, 45, 130)) {
    for (const int threads : {1, 2}) {
      std::vector<float> fast = c, plain = c;
      cpu::multiply(p, a.data(), b.data(), fast.data(), threads);
      cpu::reference::multiply(p, a.data(), b.data(), plain.data());
      CHECK(fast == plain);
    }
  }
}

TEST_CASE("products of 16 bits are those of plain loops over the rounded numbers", "[products]") {
  const std::vector<float> a = whole(67 * 130, 1), b = whole(130 * 45, 2), c = whole(67 * 45, 3);
  for (const DType type : {DType::bf16, DType::fp16}) {
    if (!cpu::multiplies(type)) {
      CHECK_THAT(cpu::multiplier_name(type), Containing("none: "));
      CHECK_THROWS_AS(cpu::multiply({.m = 1, .n = 1, .k = 1}, narrow(a, type).data(),
                                    narrow(b, type).data(), type, std::vector<float>(1).data(), 1),
                      std::logic_error);
      continue;
    }
    const std::vector<half> x = narrow(a, type), y = narrow(b, type);
    for (const cpu::Product& p : all_layouts(67, 45, 130)) {
      for (const int threads : {1, 2}) {
        std::vector<float> fast = c, plain = c;
        cpu::multiply(p, x.data(), y.data(), type, fast.data(), threads);
        cpu::reference::multiply(p, a.data(), b.data(), plain.data());
        CHECK(fast == plain);
      }
    }
    std::vector<float> none(6, 5);
    cpu::multiply({.m = 2, .n = 3, .adds = true}, nullptr, nullptr, type, none.data(), 1);
    CHECK(none == std::vector<float>(6, 5));
    cpu::multiply({.m = 2, .n = 3}, nullptr, nullptr, type, none.data(), 1);
    CHECK(none == std::vector<float>(6));
    CHECK_THAT(cpu::multiplier_name(type), Containing("oneDNN"));
  }
}

TEST_CASE("a product of 16 bits gives the same bits again", "[products]") {
  if (!cpu::multiplies(DType::bf16)) {
    WARN("not tried: " << cpu::multiplier_name(DType::bf16));
    return;
  }
  const std::vector<half> x = narrow(numbers(100 * 300, 5), DType::bf16),
                          y = narrow(numbers(300 * 70, 6), DType::bf16);
  std::vector<float> first(100 * 70), again(100 * 70);
  const cpu::Product p{.m = 100, .n = 70, .k = 300};
  cpu::multiply(p, x.data(), y.data(), DType::bf16, first.data(), 1);
  // Operands elsewhere in memory, at an odd place.
  std::vector<half> moved(x.size() + 1);
  std::ranges::copy(x, moved.begin() + 1);
  cpu::multiply(p, moved.data() + 1, y.data(), DType::bf16, again.data(), 1);
  CHECK(first == again);
}

TEST_CASE("softmax of a row is that in double, the same bits in every instruction set",
          "[products]") {
  // exp(-ln 2) = 1/2 and exp(-ln 4) = 1/4 beside 1: 4/7, 2/7, 1/7.
  std::vector<float> three = {std::log(4.0F), std::log(2.0F), 0};
  cpu::slices().softmax(three.data(), 3, 1);
  CHECK_THAT(three[0], Catch::Matchers::WithinAbs(4.0 / 7, 2e-7));
  CHECK_THAT(three[2], Catch::Matchers::WithinAbs(1.0 / 7, 2e-7));
  for (const unsigned n : {1U, 5U, 16U, 33U, 1000U}) {
    std::vector<float> row = numbers(n, 7);
    for (float& x : row) x *= 30;
    std::vector<double> exact(n);
    double most = -1e9, sum = 0;
    for (const float x : row) most = std::max(most, double{x});
    for (std::size_t i = 0; i < n; ++i) sum += exact[i] = std::exp(0.25 * (double{row[i]} - most));
    for (double& e : exact) e /= sum;
    std::vector<float> baseline = row;
    cpu::slices_of_cpu(0)->softmax(baseline.data(), n, 0.25F);
    // Exponent to 15·2^-24, series to 3e-7, sum and quotient to a few 2^-24.
    for (std::size_t i = 0; i < n; ++i)
      CHECK(std::abs(double{baseline[i]} - exact[i]) <= 2e-6 * exact[i]);
    for (int set = 1; const cpu::Slices* s = cpu::slices_of_cpu(set); ++set) {
      std::vector<float> other = row;
      s->softmax(other.data(), n, 0.25F);
      CHECK(bits_of(other) == bits_of(baseline));
    }
  }
}

TEST_CASE("attention is that in double, however scores are kept", "[products]") {
  const cpu::HeadsOfAttention shape{.heads = 3, .tokens = 150, .dim = 32};
  const std::vector<float> q = numbers(3 * 150 * 32, 1), k = numbers(3 * 150 * 32, 2),
                           v = numbers(3 * 150 * 32, 3);
  const std::vector<double> exact = exact_attention(shape, q, k, v);
  for (const cpu::Scores kind : {cpu::Scores::in_memory, cpu::Scores::in_cache}) {
    for (const int threads : {1, 2}) {
      std::vector<float> scores(static_cast<std::size_t>(cpu::score_count(shape, kind, threads))),
          out(q.size(), NAN);
      cpu::attention(shape, kind, q.data(), k.data(), v.data(), scores.data(), out.data(), threads);
      CHECK(largest_difference(out, exact) < 1e-5);
      if (!cpu::multiplies(DType::bf16)) continue;
      const std::vector<half> q16 = narrow(q, DType::bf16), k16 = narrow(k, DType::bf16),
                              v16 = narrow(v, DType::bf16);
      std::vector<half> p(scores.size());
      std::ranges::fill(out, NAN);
      cpu::attention(shape, kind, q16.data(), k16.data(), v16.data(), DType::bf16, scores.data(),
                     p.data(), out.data(), threads);
      // |v| <= 1: operands and probabilities rounded by 2^-9 each, scores below sqrt(32).
      CHECK(largest_difference(out, exact) < 0.02);
    }
  }
}

TEST_CASE("the first token attends to itself alone", "[products]") {
  const cpu::HeadsOfAttention shape{.heads = 2, .tokens = 70, .dim = 8};
  const std::vector<float> q = numbers(2 * 70 * 8, 1), v = numbers(2 * 70 * 8, 3);
  for (const cpu::Scores kind : {cpu::Scores::in_memory, cpu::Scores::in_cache}) {
    std::vector<float> scores(static_cast<std::size_t>(cpu::score_count(shape, kind, 1))),
        out(q.size());
    cpu::attention(shape, kind, q.data(), q.data(), v.data(), scores.data(), out.data(), 1);
    for (std::size_t d = 0; d < 8; ++d) {
      CHECK(out[d] == v[d]);
      CHECK(out[70 * 8 + d] == v[70 * 8 + d]);
    }
  }
}
