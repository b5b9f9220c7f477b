#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/kernels/products.hpp"
#include "calib/kernels/reference.hpp"

/// gemm: FLOP/s of C[m,n] = A[m,k] B[k,n], 2·m·n·k operations, values uniform in [-1, 1). Cubes,
/// sizes just beside powers of two, and the products of a transformer layer. `dtype` is a number of
/// DType: 0 fp32 by the BLAS; 1 bf16 and 2 fp16 with fp32 sums by oneDNN, where the CPU has
/// instructions for them (cpu::multiplies): without, such products run as those of fp32 and are not
/// measured.
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
  GemmBench(const Setup& setup, std::initializer_list<DType> types) {
    const Clock clock = highest_clock();
    for (const DType type : types) {
      if (!cpu::multiplies(type)) continue;
      for (const Shape& s : shapes(setup.effort)) {
        for (const int threads : thread_counts(setup)) add(clock, {s, threads, type});
      }
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    std::int64_t a = 0, b = 0, c = 0;
    for (const auto& [s, threads, type] : settings_) {
      a = std::max(a, s.m * s.k), b = std::max(b, s.k * s.n), c = std::max(c, s.m * s.n);
    }
    a_.make(static_cast<std::size_t>(a), 1);
    b_.make(static_cast<std::size_t>(b), 2);
    c_.resize(static_cast<std::size_t>(c));
  }

  Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    a_.become(s.type), b_.become(s.type);
    std::ranges::fill(c_, std::numeric_limits<float>::quiet_NaN());
    const Timed timed = run_for(rows_[row].target, [&] { multiply(s); });
    return {.value = timed.rate(flops_of(Gemm{s.shape.m, s.shape.n, s.shape.k}).value()),
            .elapsed = timed.elapsed,
            .is_verified = is_right(s.shape)};
  }

  void finish() override { a_ = {}, b_ = {}, c_ = {}; }

 private:
  struct Setting {
    Shape shape;
    int threads;
    DType type;
  };
  // Numbers in fp32, the same in 16 bits of the type asked for last, and what those are worth.
  struct Operand {
    std::vector<float> wide, exact;
    std::vector<cpu::half> narrow;
    DType type = DType::fp32;

    void make(std::size_t n, std::uint32_t key) {
      wide.resize(n), narrow.resize(n);
      for (std::size_t i = 0; i < n; ++i) wide[i] = 2 * keyed(i, key) - 3;
      exact = wide, type = DType::fp32;
    }
    void become(DType t) {
      if (t == type) return;
      type = t, exact = wide;
      if (t == DType::fp32) return;
      cpu::reference::cast(wide, t, narrow);
      cpu::reference::cast(narrow, t, exact);
    }
  };

  void add(const Clock& clock, const Setting& s) {
    const Settings at = {{"m", static_cast<double>(s.shape.m)},
                         {"n", static_cast<double>(s.shape.n)},
                         {"k", static_cast<double>(s.shape.k)},
                         {"threads", s.threads},
                         {"dtype", static_cast<double>(s.type)}};
    rows_.push_back(
        cpu_row("gemm", at, Unit::flops_per_second, product_ceiling(clock, s.threads, s.type)));
    settings_.push_back(s);
  }

  void multiply(const Setting& s) {
    const cpu::Product product{.m = s.shape.m, .n = s.shape.n, .k = s.shape.k};
    if (s.type == DType::fp32) {
      return cpu::multiply(product, a_.wide.data(), b_.wide.data(), c_.data(), s.threads);
    }
    cpu::multiply(product, a_.narrow.data(), b_.narrow.data(), s.type, c_.data(), s.threads);
  }

  // Elements of C against their sum in double, to the rounding that k additions in fp32 may have:
  // k·u/(1 - k·u) of the sum of magnitudes (Higham 2002, section 3.1), u = 2^-24. Products of two
  // numbers of 16 bits are exact in fp32.
  bool is_right(const Shape& s) const {
    for (const std::size_t at : spots(static_cast<std::size_t>(s.m * s.n))) {
      const auto row = static_cast<std::int64_t>(at) / s.n,
                 column = static_cast<std::int64_t>(at) % s.n;
      double sum = 0, magnitude = 0;
      for (std::int64_t l = 0; l < s.k; ++l) {
        const double term = double{a_.exact[static_cast<std::size_t>(row * s.k + l)]} *
                            double{b_.exact[static_cast<std::size_t>(l * s.n + column)]};
        sum += term, magnitude += std::abs(term);
      }
      const double ku = static_cast<double>(s.k) * 0x1p-24;
      // A NaN that was never overwritten fails as well.
      if (!(std::abs(double{c_[at]} - sum) <= ku / (1 - ku) * magnitude)) return false;
    }
    return true;
  }

  std::vector<Row> rows_;
  std::vector<Setting> settings_;
  Operand a_, b_;
  std::vector<float> c_;
};

}  // namespace

std::unique_ptr<Bench> make_gemm(const Setup& setup) {
  return std::make_unique<GemmBench>(setup, std::initializer_list{DType::fp32});
}

std::string why_no_half_gemm(const Setup&) {
  if (cpu::multiplies(DType::bf16) || cpu::multiplies(DType::fp16)) return "";
  return cpu::multiplier_name(DType::bf16) + "; such products run as those of fp32";
}

std::unique_ptr<Bench> make_half_gemm(const Setup& setup) {
  return std::make_unique<GemmBench>(setup, std::initializer_list{DType::bf16, DType::fp16});
}

}  // namespace tidegate::calib
