#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/kernels/products.hpp"
#include "calib/kernels/reference.hpp"

/// attention: FLOP/s of causal attention over 16 heads of 64 numbers, counted as the model counts
/// it (models/work.hpp): 4·heads·tokens²·dim, half of that for causality, whatever is computed.
///   scores 0   in memory: those of all heads, their softmax, the sums over values; every key is
///              computed and half of them thrown away, as frameworks do without a fused kernel
///   scores 1   in a cache, block by block over the keys that count, as fused kernels do
/// dtype as in gemm.
namespace tidegate::calib {
namespace {

constexpr std::int64_t heads = 16, dim = 64;  // hidden size 1024

std::vector<std::int64_t> lengths(Effort effort) {
  if (effort == Effort::quick) return {256, 1024};
  if (effort == Effort::standard) return {256, 512, 1024};
  return {128, 256, 512, 1024, 2048};
}

class AttentionBench : public Bench {
 public:
  explicit AttentionBench(const Setup& setup) {
    const Clock clock = highest_clock();
    // One thread tells little that products do not; a training step uses all.
    const int threads = std::max(setup.threads, 1);
    for (const DType type : {DType::fp32, DType::bf16, DType::fp16}) {
      if (!cpu::multiplies(type)) continue;
      for (const std::int64_t n : lengths(setup.effort)) {
        for (const cpu::Scores scores : {cpu::Scores::in_memory, cpu::Scores::in_cache}) {
          add(clock, {{heads, n, dim}, scores, threads, type});
        }
      }
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    std::int64_t values = 0, scores = 0;
    for (const Setting& s : settings_) {
      values = std::max(values, heads * s.shape.tokens * dim);
      scores = std::max(scores, cpu::score_count(s.shape, s.scores, s.threads));
    }
    for (std::size_t i = 0; i < in_.size(); ++i) {
      in_[i].resize(static_cast<std::size_t>(values));
      // Independent of each other, as tolerance() takes them to be: keyed() steps evenly.
      std::mt19937 random(static_cast<std::uint32_t>(20 + i));
      for (float& value : in_[i]) value = static_cast<float>(random() >> 8) * 0x1p-23F - 1;
      narrow_[i].resize(in_[i].size());
    }
    out_.resize(static_cast<std::size_t>(values));
    scores_.resize(static_cast<std::size_t>(scores));
    probabilities_.resize(scores_.size());
  }

  Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    if (s.type != DType::fp32) {
      for (std::size_t i = 0; i < in_.size(); ++i) cpu::reference::cast(in_[i], s.type, narrow_[i]);
    }
    std::ranges::fill(out_, std::numeric_limits<float>::quiet_NaN());
    const Timed timed = run_for(rows_[row].target, [&] { attend(s); });
    return {.value = timed.rate(flops_of(model_of(s)).value()),
            .elapsed = timed.elapsed,
            .is_verified = is_right(s)};
  }

  void finish() override {
    for (auto& v : in_) v = {};
    for (auto& v : narrow_) v = {};
    out_ = {}, scores_ = {}, probabilities_ = {};
  }

 private:
  struct Setting {
    cpu::HeadsOfAttention shape;
    cpu::Scores scores;
    int threads;
    DType type;
  };
  static Attention model_of(const Setting& s) {
    return {.heads = heads,
            .kv_heads = heads,
            .queries = s.shape.tokens,
            .keys = s.shape.tokens,
            .head_dim = dim,
            .dtype = s.type};
  }

  void add(const Clock& clock, const Setting& s) {
    const Settings at = {
        {"heads", static_cast<double>(heads)},           {"dim", static_cast<double>(dim)},
        {"tokens", static_cast<double>(s.shape.tokens)}, {"threads", s.threads},
        {"dtype", static_cast<double>(s.type)},          {"scores", static_cast<double>(s.scores)}};
    rows_.push_back(cpu_row("attention", at, Unit::flops_per_second,
                            product_ceiling(clock, s.threads, s.type)));
    settings_.push_back(s);
  }

  void attend(const Setting& s) {
    if (s.type == DType::fp32) {
      return cpu::attention(s.shape, s.scores, in_[0].data(), in_[1].data(), in_[2].data(),
                            scores_.data(), out_.data(), s.threads);
    }
    cpu::attention(s.shape, s.scores, narrow_[0].data(), narrow_[1].data(), narrow_[2].data(),
                   s.type, scores_.data(), probabilities_.data(), out_.data(), s.threads);
  }

  // Values are in [-1, 1). In fp32 a relative error e of every probability moves a sum of them by e
  // at most: a score of `dim` products is off by dim·u of at most dim, over sqrt(dim), the sum over
  // keys by keys·u. In 16 bits operands and probabilities are rounded by 2^-9 (bf16) each, about
  // evenly to both sides: over n independent keys the standard deviation of a sum is below
  // 2^-8 / sqrt(n), of which four are granted; the sum itself deviates by 0.58 / sqrt(n), so that
  // zeros would show.
  static double tolerance(const Setting& s) {
    constexpr double u = 0x1p-24;
    const double root = std::sqrt(static_cast<double>(dim));
    const auto n = static_cast<double>(s.shape.tokens);
    const double exact = (root * dim + n + 16) * u;
    return s.type == DType::fp32 ? exact : exact + 4 * 0x1p-8 / std::sqrt(n);
  }

  // The last token of each head in double.
  bool is_right(const Setting& s) const {
    const std::int64_t n = s.shape.tokens;
    std::vector<double> p(static_cast<std::size_t>(n)), out(dim);
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto at = [&](std::int64_t token) {
        return static_cast<std::size_t>((h * n + token) * dim);
      };
      double sum = 0;
      std::ranges::fill(out, 0.0);
      for (std::int64_t j = 0; j < n; ++j) {
        double score = 0;
        for (std::size_t d = 0; d < dim; ++d)
          score += double{in_[0][at(n - 1) + d]} * double{in_[1][at(j) + d]};
        const double share = std::exp(score / std::sqrt(static_cast<double>(dim)));
        sum += share;
        for (std::size_t d = 0; d < dim; ++d) out[d] += share * double{in_[2][at(j) + d]};
      }
      for (std::size_t d = 0; d < dim; ++d) {
        // A NaN that was never overwritten fails as well.
        if (!(std::abs(double{out_[at(n - 1) + d]} - out[d] / sum) <= tolerance(s))) return false;
      }
    }
    return true;
  }

  std::vector<Row> rows_;
  std::vector<Setting> settings_;
  std::array<std::vector<float>, 3> in_;
  std::array<std::vector<cpu::half>, 3> narrow_;
  std::vector<float> out_, scores_;
  std::vector<cpu::half> probabilities_;
};

}  // namespace

std::unique_ptr<Bench> make_attention(const Setup& setup) {
  return std::make_unique<AttentionBench>(setup);
}

}  // namespace tidegate::calib
