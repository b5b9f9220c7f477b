#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/kernels/kernels.hpp"

/// gemm: FLOP/s of C[m,n] = A[m,k] B[k,n] in fp32, 2·m·n·k operations, values uniform in [-1, 1).
/// Cubes, sizes just beside powers of two, and the products of a transformer layer.
///
/// fp32 alone: OpenBLAS declares a product of bf16 (cblas_sbgemm), but Debian 12's 0.3.21 is built
/// without it and does not export it.
namespace tidegate::calib {
namespace {

struct Shape {
  std::int64_t m, n, k;
};

std::vector<Shape> shapes(Effort effort) {
  std::vector<Shape> all = {{256, 256, 256}, {1024, 1024, 1024}};
  if (effort == Effort::quick) return all;
  for (const std::int64_t n : {64, 128, 512, 1025, 2048}) all.push_back({n, n, n});
  // 512 tokens, hidden size 1024: attention's inputs, both layers of the MLP, the weights'
  // gradient.
  for (const Shape& s : {Shape{512, 3072, 1024}, Shape{512, 4096, 1024}, Shape{512, 1024, 4096},
                         Shape{1024, 4096, 512}}) {
    all.push_back(s);
  }
  if (effort == Effort::standard) return all;
  for (const std::int64_t n : {96, 192, 384, 768, 1536, 257, 2049, 4096}) all.push_back({n, n, n});
  // One token, few tokens, a vocabulary of 32000.
  for (const Shape& s : {Shape{1, 4096, 1024}, Shape{16, 4096, 1024}, Shape{512, 32000, 1024}}) {
    all.push_back(s);
  }
  return all;
}

class GemmBench : public Bench {
 public:
  explicit GemmBench(const Setup& setup) {
    const Clock clock = highest_clock();
    for (const Shape& s : shapes(setup.effort)) {
      for (const int threads : thread_counts(setup)) {
        const Settings at = {{"m", static_cast<double>(s.m)},
                             {"n", static_cast<double>(s.n)},
                             {"k", static_cast<double>(s.k)},
                             {"threads", threads}};
        rows_.push_back(cpu_row("gemm", at, Unit::flops_per_second, flops_ceiling(clock, threads)));
        settings_.push_back({s, threads});
      }
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    std::int64_t a = 0, b = 0, c = 0;
    for (const auto& [s, threads] : settings_) {
      a = std::max(a, s.m * s.k), b = std::max(b, s.k * s.n), c = std::max(c, s.m * s.n);
    }
    a_.resize(static_cast<std::size_t>(a));
    b_.resize(static_cast<std::size_t>(b));
    c_.resize(static_cast<std::size_t>(c));
    for (std::size_t i = 0; i < a_.size(); ++i) a_[i] = 2 * keyed(i, 1) - 3;
    for (std::size_t i = 0; i < b_.size(); ++i) b_[i] = 2 * keyed(i, 2) - 3;
  }

  Sample sample(std::size_t row) override {
    const auto& [s, threads] = settings_[row];
    std::ranges::fill(c_, std::numeric_limits<float>::quiet_NaN());
    const int used = threads;
    const Shape shape = s;
    const Timed timed = run_for(rows_[row].target, [&] {
      cpu::gemm(shape.m, shape.n, shape.k, a_.data(), b_.data(), c_.data(), used);
    });
    const double flops =
        2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    return {.value = timed.rate(flops), .elapsed = timed.elapsed, .is_verified = is_right(s)};
  }

  void finish() override { a_ = {}, b_ = {}, c_ = {}; }

 private:
  // Elements of C against their sum in double, to the rounding that k additions in fp32 may have:
  // k·u/(1 - k·u) of the sum of magnitudes (Higham 2002, section 3.1), u = 2^-24.
  bool is_right(const Shape& s) const {
    for (const std::size_t at : spots(static_cast<std::size_t>(s.m * s.n))) {
      const auto row = static_cast<std::int64_t>(at) / s.n,
                 column = static_cast<std::int64_t>(at) % s.n;
      double sum = 0, magnitude = 0;
      for (std::int64_t l = 0; l < s.k; ++l) {
        const double term = double{a_[static_cast<std::size_t>(row * s.k + l)]} *
                            double{b_[static_cast<std::size_t>(l * s.n + column)]};
        sum += term, magnitude += std::abs(term);
      }
      const double ku = static_cast<double>(s.k) * 0x1p-24;
      // A NaN that was never overwritten fails as well.
      if (!(std::abs(double{c_[at]} - sum) <= ku / (1 - ku) * magnitude)) return false;
    }
    return true;
  }

  std::vector<Row> rows_;
  std::vector<std::pair<Shape, int>> settings_;
  std::vector<float> a_, b_, c_;
};

}  // namespace

std::unique_ptr<Bench> make_gemm(const Setup& setup) { return std::make_unique<GemmBench>(setup); }

}  // namespace tidegate::calib
