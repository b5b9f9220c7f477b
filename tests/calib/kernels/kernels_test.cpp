#include "calib/kernels/kernels.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include "calib/kernels/reference.hpp"
#include "calib/kernels/slices.hpp"
#include "tests/calib/kernels/numbers.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using cpu::half;

namespace {

// An array between two fences that nobody may write.
class Fenced {
 public:
  explicit Fenced(std::size_t n) : all_(n + 32, 7.0F), n_(n) {}
  std::span<float> inside() { return std::span(all_).subspan(16, n_); }
  std::vector<float> values() { return {inside().begin(), inside().end()}; }
  bool is_intact() const {
    for (std::size_t i = 0; i < 16; ++i) {
      if (all_[i] != 7.0F || all_[all_.size() - 1 - i] != 7.0F) return false;
    }
    return true;
  }

 private:
  std::vector<float> all_;
  std::size_t n_;
};

// Sixteen sums by index modulo 16, added in halves: the order that slices.inc promises.
double squares_in_order(const std::vector<float>& a) {
  double sums[16] = {};
  for (std::size_t i = 0; i < a.size(); ++i) sums[i % 16] += double{a[i]} * double{a[i]};
  for (std::size_t width = 8; width > 0; width /= 2) {
    for (std::size_t k = 0; k < width; ++k) sums[k] += sums[k + width];
  }
  return sums[0];
}

}  // namespace

TEST_CASE("every instruction set of this CPU gives the bits of the plain loops", "[kernels]") {
  const cpu::AdamStep step = {.scale = 0.5F,
                              .beta1 = 0.9F,
                              .rest1 = 0.1F,
                              .beta2 = 0.99F,
                              .rest2 = 0.01F,
                              .keep = 0.999F,
                              .rate = 0.02F,
                              .root = 3.0F,
                              .epsilon = 1e-8F};
  for (int set = 0; const cpu::Slices* s = cpu::slices_of_cpu(set); ++set) {
    for (const std::size_t n : sizes) {
      INFO(s->name << ", " << n << " elements");
      const std::vector<float> any = patterns(n, 1);
      const std::vector<half> any_half = half_patterns(n, 2);
      std::vector<float> wide(n), wide_plain(n);
      std::vector<half> narrow(n), narrow_plain(n);
      for (const DType type : {DType::bf16, DType::fp16}) {
        const bool is_bf16 = type == DType::bf16;
        (is_bf16 ? s->from_bf16 : s->from_fp16)(any_half.data(), wide.data(), n);
        cpu::reference::cast(any_half, type, wide_plain);
        CHECK(bits_of(wide) == bits_of(wide_plain));
        (is_bf16 ? s->to_bf16 : s->to_fp16)(any.data(), narrow.data(), n);
        cpu::reference::cast(any, type, narrow_plain);
        CHECK(narrow == narrow_plain);
      }
      std::vector<float> p = numbers(n, 3), m = numbers(n, 4), v(n, 0.25F);
      std::vector<float> p0 = p, m0 = m, v0 = v;
      const std::vector<float> g = numbers(n, 5);
      s->adam(p.data(), m.data(), v.data(), g.data(), n, step);
      cpu::slices_of_cpu(0)->adam(p0.data(), m0.data(), v0.data(), g.data(), n, step);
      CHECK((p == p0 && m == m0 && v == v0));
      if (n <= cpu::norm_block) CHECK(s->squares(g.data(), n) == squares_in_order(g));
      CHECK(s->read(any.data(), n) == cpu::reference::read(any));
      // The first 2^20 rounds and one of the next piece.
      const double lanes = static_cast<double>(s->fma_lanes);
      if (n == 0) CHECK(s->fma((1 << 20) + 1, 1.0F, 1.0F) == lanes * ((1 << 20) + 1));
    }
  }
}

TEST_CASE("every instruction set rounds ties and their neighbours like the numbers one by one",
          "[kernels]") {
  // The middle between all neighbours of both formats, one place below and one above.
  std::vector<float> close;
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto tie = std::bit_cast<float>(i << 16 | 0x8000);
    const float low = cpu::from_fp16(static_cast<half>(i));
    const float high = cpu::from_fp16(static_cast<half>(i + 1));
    const float middle = (low + high) / 2;
    for (const float x : {tie, middle}) {
      close.insert(close.end(), {std::nextafter(x, -1e38F), x, std::nextafter(x, 1e38F)});
    }
  }
  std::vector<half> narrow(close.size()), plain(close.size());
  for (int set = 0; const cpu::Slices* s = cpu::slices_of_cpu(set); ++set) {
    for (const DType type : {DType::bf16, DType::fp16}) {
      (type == DType::bf16 ? s->to_bf16 : s->to_fp16)(close.data(), narrow.data(), close.size());
      cpu::reference::cast(close, type, plain);
      INFO(s->name);
      CHECK((narrow == plain));  // in brackets: a failure is not to print 400000 numbers
    }
  }
}

TEST_CASE("streams write what they must and nothing beside it", "[kernels]") {
  for (const std::size_t n : sizes) {
    for (const int threads : {1, 2, 5}) {
      INFO(n << " elements, " << threads << " threads");
      const std::vector<float> b = numbers(n, 1), c = numbers(n, 2);
      std::vector<float> expected(n);
      Fenced filled(n), copied(n), streamed(n), summed(n);
      cpu::fill(filled.inside(), 2.5F, threads);
      cpu::copy(b, copied.inside(), threads);
      cpu::copy_streaming(b, streamed.inside(), threads);
      cpu::triad(b, c, 3.0F, summed.inside(), threads);
      cpu::reference::triad(b, c, 3.0F, expected);
      CHECK(filled.values() == std::vector<float>(n, 2.5F));
      CHECK(copied.values() == b);
      CHECK(streamed.values() == b);
      CHECK(summed.values() == expected);
      CHECK((filled.is_intact() && copied.is_intact()));
      CHECK((streamed.is_intact() && summed.is_intact()));
    }
  }
}

TEST_CASE("streaming copies start anywhere", "[kernels]") {
  const std::vector<float> from = numbers(300, 1);
  for (std::size_t at = 0; at < 20; ++at) {
    std::vector<float> to(300, 7.0F), expected = to;
    cpu::copy_streaming(std::span(from).subspan(3, 250), std::span(to).subspan(at, 250), 1);
    std::copy_n(from.begin() + 3, 250, expected.begin() + static_cast<std::ptrdiff_t>(at));
    CHECK(to == expected);
  }
}

TEST_CASE("reading returns the sum of the bit patterns", "[kernels]") {
  // 1.0 is 0x3f800000; three of them are 0xbe800000, and 2^-149 is 1.
  const std::vector<float> a = {1.0F, 1.0F, 1.0F, std::numeric_limits<float>::denorm_min()};
  CHECK(cpu::read(a, 1) == double{0xbe800001});
  const std::vector<float> many = patterns(20011, 1);
  for (const int threads : {1, 2, 7}) CHECK(cpu::read(many, threads) == cpu::reference::read(many));
}

TEST_CASE("casts give the same bits for every number of threads", "[kernels]") {
  const DType type = GENERATE(DType::bf16, DType::fp16);
  const std::vector<float> any = patterns(20011, 1);
  const std::vector<half> any_half = half_patterns(20011, 2);
  std::vector<half> narrow(any.size()), narrow_plain(any.size());
  std::vector<float> wide(any.size()), wide_plain(any.size());
  cpu::reference::cast(any, type, narrow_plain);
  cpu::reference::cast(any_half, type, wide_plain);
  for (const int threads : {1, 2, 7}) {
    cpu::cast(any, type, narrow, threads);
    cpu::cast(any_half, type, wide, threads);
    CHECK(narrow == narrow_plain);
    CHECK(bits_of(wide) == bits_of(wide_plain));
  }
  CHECK_THROWS_AS(cpu::cast(any, DType::fp8, narrow, 1), std::logic_error);
  CHECK_THROWS_AS(cpu::cast(any_half, DType::fp32, wide, 1), std::logic_error);
}

TEST_CASE("the squared norm is that of the numbers, with the same bits for all threads",
          "[kernels]") {
  bool finite = false;
  CHECK(cpu::squared_norm(std::vector<float>{3, 4}, finite, 1) == 25);  // 9 + 16
  CHECK(finite);
  for (const std::size_t n : sizes) {
    const std::vector<float> a = numbers(n, 6);
    long double exact = 0;
    for (const float x : a) exact += static_cast<long double>(x) * static_cast<long double>(x);
    const double one = cpu::squared_norm(a, finite, 1);
    CHECK(one == Approx(static_cast<double>(exact)).epsilon(1e-12));
    for (const int threads : {2, 3, 8}) CHECK(cpu::squared_norm(a, finite, threads) == one);
  }
}

TEST_CASE("the squared norm says whether all numbers are finite", "[kernels]") {
  using limits = std::numeric_limits<float>;
  const float spoiler = GENERATE(limits::infinity(), -limits::infinity(), limits::quiet_NaN());
  bool finite = false;
  for (const std::size_t at : {0U, 15U, 4095U, 4096U, 5002U}) {
    std::vector<float> a(5003, limits::max());
    cpu::squared_norm(a, finite, 2);
    CHECK(finite);  // 5003·(3.4e38)² = 5.8e80 is far within a double
    a[at] = spoiler;
    cpu::squared_norm(a, finite, 2);
    CHECK_FALSE(finite);
  }
}

TEST_CASE("a matrix product of integers is exact", "[kernels]") {
  // [1 2; 3 4]·[5 6; 7 8] = [5+14 6+16; 15+28 18+32]
  const std::vector<float> a = {1, 2, 3, 4}, b = {5, 6, 7, 8};
  std::vector<float> c(4, -1.0F);
  cpu::gemm(2, 2, 2, a.data(), b.data(), c.data(), 1);
  CHECK(c == std::vector<float>{19, 22, 43, 50});
  // Integers up to 8 with inner dimension 130: sums below 2^24 are exact in any order.
  for (const int threads : {1, 2}) {
    const std::int64_t m = 67, n = 45, k = 130;
    std::vector<float> x = numbers(67 * 130, 1), y = numbers(130 * 45, 2);
    for (float& v : x) v = std::round(v * 8);
    for (float& v : y) v = std::round(v * 8);
    std::vector<float> fast(67 * 45, -1.0F), plain(67 * 45);
    cpu::gemm(m, n, k, x.data(), y.data(), fast.data(), threads);
    cpu::reference::gemm(m, n, k, x.data(), y.data(), plain.data());
    CHECK(fast == plain);
  }
}

TEST_CASE("a matrix product without an inner dimension is zero", "[kernels]") {
  std::vector<float> c(6, -1.0F);
  cpu::gemm(2, 3, 0, nullptr, nullptr, c.data(), 1);
  CHECK(c == std::vector<float>(6));
  cpu::gemm(0, 3, 4, nullptr, c.data(), nullptr, 1);
  CHECK(std::string(cpu::blas_name()).size() > 3);
}

TEST_CASE("a chain of multiply-adds counts every operation that it did", "[kernels]") {
  for (const int threads : {1, 2, 3}) {
    double sum = 0;
    const double flops = cpu::fma_chain(3'000'000, threads, sum);
    CHECK(sum == flops / 2);
    CHECK(flops == 2.0 * 3e6 * static_cast<double>(cpu::slices().fma_lanes) * threads);
  }
}

TEST_CASE("a BLAS with kernels of before AVX is told how to use this CPU", "[kernels]") {
  const std::string name = cpu::blas_name(), remedy = cpu::blas_remedy();
  const bool is_old = name.find("Prescott") != std::string::npos;
  CHECK(remedy.empty() == !(is_old && cpu::slices().width > 4));
  if (!remedy.empty()) CHECK_THAT(remedy, Containing("OPENBLAS_CORETYPE="));
}
