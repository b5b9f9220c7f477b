#include <bit>
#include <cmath>
#include <span>

#include "calib/kernels/kernels.hpp"
#include "calib/kernels/reference.hpp"
#include "tests/calib/kernels/numbers.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using cpu::AdamOptions;
using cpu::half;

namespace {

struct State {
  std::vector<float> p, m, v;
  bool operator==(const State&) const = default;
};
State some_state(std::size_t n) {
  State s{numbers(n, 1), numbers(n, 2), numbers(n, 3)};
  for (float& x : s.v) x = std::abs(x);
  return s;
}
const AdamOptions third = {.rate = 3e-3F, .decay = 0.1F, .step = 3, .scale = 0.25F};

// One step of the formula in double.
void formula(double& p, double& m, double& v, double g, const AdamOptions& o) {
  const double b1 = double{o.beta1}, b2 = double{o.beta2}, t = static_cast<double>(o.step);
  const double x = double{o.scale} * g;
  m = b1 * m + (1 - b1) * x;
  v = b2 * v + (1 - b2) * x * x;
  const double m_hat = m / (1 - std::pow(b1, t)), v_hat = v / (1 - std::pow(b2, t));
  p = p * (1 - double{o.rate} * double{o.decay}) -
      double{o.rate} * m_hat / (std::sqrt(v_hat) + double{o.epsilon});
}

}  // namespace

TEST_CASE("the first step of Adam moves a parameter by the rate, whatever the gradient's size",
          "[adam]") {
  // t = 1 from zero moments: m_hat = g, v_hat = g²; p = 1 - 0.1·g/|g|, with decay 0.5 less 0.05.
  std::vector<float> p = {1, 1, 1}, m(3), v(3);
  const std::vector<float> g = {2.0F, -1e-3F, 0.0F};
  const double decay = GENERATE(0.0, 0.5);
  cpu::adam(p, m, v, g, {.rate = 0.1F, .decay = static_cast<float>(decay)}, 1);
  CHECK(double{p[0]} == Approx(1 - 0.1 * decay - 0.1));
  CHECK(double{p[1]} == Approx(1 - 0.1 * decay + 0.1).epsilon(2e-5));  // eps is 1e-5 of |g|
  CHECK(double{p[2]} == Approx(1 - 0.1 * decay));
  CHECK(double{m[0]} == Approx(0.1 * 2));
  CHECK(double{v[0]} == Approx(0.001 * 4).epsilon(2e-5));  // 1 - 0.999F is 0.00099998713
}

TEST_CASE("Adam follows its formula in double to the rounding of fp32 over many steps", "[adam]") {
  const std::size_t n = 257;
  State s = some_state(n);
  std::vector<double> p(s.p.begin(), s.p.end()), m(s.m.begin(), s.m.end()),
      v(s.v.begin(), s.v.end());
  for (int step = 1; step <= 20; ++step) {
    const std::vector<float> g = numbers(n, 100 + static_cast<std::uint32_t>(step));
    AdamOptions options = third;
    options.step = step;
    cpu::adam(s.p, s.m, s.v, g, options, 2);
    for (std::size_t i = 0; i < n; ++i) formula(p[i], m[i], v[i], double{g[i]}, options);
  }
  // Per step three roundings of p, |p| below 2, and eight of its update; the errors of 20 steps at
  // most add up: 20·(3·2 + 8·0.03)·2^-24 = 7.5e-6. Moments: 20·3 roundings of numbers below 1.
  double worst_p = 0, worst_m = 0, worst_v = 0;
  for (std::size_t i = 0; i < n; ++i) {
    worst_p = std::max(worst_p, std::abs(double{s.p[i]} - p[i]));
    worst_m = std::max(worst_m, std::abs(double{s.m[i]} - m[i]));
    worst_v = std::max(worst_v, std::abs(double{s.v[i]} - v[i]));
  }
  CHECK(worst_p < 7.5e-6);
  CHECK(worst_m < 60 * 0x1p-24);
  CHECK(worst_v < 60 * 0x1p-24);
}

TEST_CASE("Adam gives the bits of its plain loop, for any size and number of threads", "[adam]") {
  for (const std::size_t n : sizes) {
    const std::vector<float> g = numbers(n, 4);
    State plain = some_state(n);
    cpu::reference::adam(plain.p, plain.m, plain.v, g, third);
    for (const int threads : {1, 2, 3, 8}) {
      State fast = some_state(n);
      cpu::adam(fast.p, fast.m, fast.v, g, third, threads);
      INFO(n << " parameters, " << threads << " threads");
      CHECK(fast == plain);
    }
  }
}

TEST_CASE("Adam over parts gives the bits of Adam over the whole", "[adam]") {
  const std::size_t n = 20011;
  const std::vector<float> g = numbers(n, 4);
  State whole = some_state(n), parts = some_state(n);
  cpu::adam(whole.p, whole.m, whole.v, g, third, 2);
  const std::vector<std::size_t> cuts = {0, 1, 6, 39, 5000, 5016, 12345, n};
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    const std::size_t at = cuts[k], count = cuts[k + 1] - at;
    cpu::adam(std::span(parts.p).subspan(at, count), std::span(parts.m).subspan(at, count),
              std::span(parts.v).subspan(at, count), std::span(g).subspan(at, count), third, 1);
  }
  CHECK(parts == whole);
}

TEST_CASE("Adam on 16-bit gradients is Adam on the widened ones, and writes what it narrows",
          "[adam]") {
  const DType type = GENERATE(DType::bf16, DType::fp16);
  for (const std::size_t n : sizes) {
    std::vector<half> g(n), out(n), expected(n);
    cpu::reference::cast(numbers(n, 5), type, g);
    std::vector<float> widened(n);
    cpu::reference::cast(g, type, widened);
    State plain = some_state(n), silent = some_state(n);
    cpu::reference::adam(plain.p, plain.m, plain.v, widened, third);
    cpu::reference::cast(plain.p, type, expected);
    for (const int threads : {1, 3}) {
      State fast = some_state(n);
      cpu::adam(fast.p, fast.m, fast.v, g, type, out, third, threads);
      INFO(n << " parameters, " << threads << " threads");
      CHECK(fast == plain);
      CHECK(out == expected);
    }
    cpu::adam(silent.p, silent.m, silent.v, g, type, {}, third, 2);
    CHECK(silent == plain);
  }
}

TEST_CASE("Adam refuses arrays of different sizes, steps before the first and types without a cast",
          "[adam]") {
  std::vector<float> a(8), b(8), c(8), g(7);
  std::vector<half> small(8);
  CHECK_THROWS_AS(cpu::adam(a, b, c, g, {}, 1), std::logic_error);
  CHECK_THROWS_AS(cpu::adam(a, b, c, std::span<const float>(a), {.step = 0}, 1), std::logic_error);
  CHECK_THROWS_AS(cpu::adam(a, b, c, small, DType::fp8, {}, {}, 1), std::logic_error);
  CHECK_THROWS_AS(cpu::adam(a, b, c, small, DType::bf16, std::span(small).first(3), {}, 1),
                  std::logic_error);
}
