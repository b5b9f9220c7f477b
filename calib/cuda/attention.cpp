#include <algorithm>
#include <cmath>

#include "calib/cuda/benches.hpp"
#include "calib/cuda/kernels.hpp"
#include "calib/cuda/settings.hpp"
#include "calib/cuda/shim/cublas_lt.hpp"
#include "calib/cuda/station.hpp"
#include "calib/cuda/values.hpp"
#include "calib/cuda/verify.hpp"

// Causal attention in bf16 of a layer of Llama 2 7B (32 heads of 128), eager: the products of all
// queries and keys, their softmax, the sums over values, each a kernel over all heads. Operands are
// not rotated: a step finds what the operators before it have just written.
namespace tidegate::cuda {
namespace {

constexpr std::int64_t heads = 32, dim = 128;
constexpr double memory_share = 0.2;  // of the GPU's memory, for all arrays

struct Setting {
  std::size_t station = 0;
  std::int64_t tokens = 0;
  std::size_t each() const {  // of q, k, v and the result
    return static_cast<std::size_t>(2 * heads * tokens * dim);
  }
  std::size_t scores() const { return static_cast<std::size_t>(2 * heads * tokens * tokens); }
  std::size_t in_all() const { return 4 * each() + scores(); }
};

class AttentionBench : public calib::Bench {
 public:
  explicit AttentionBench(const calib::Setup& setup)
      : gpus_(gpu_facts()), seed_(static_cast<std::uint32_t>(setup.seed)) {
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      for (const std::int64_t n : attention_lengths(setup.effort)) {
        const Setting setting{g, n};
        const auto bytes = static_cast<double>(setting.in_all());
        if (bytes <= memory_share * gpus_[g].memory.value()) settings_.push_back(setting);
      }
    }
  }

  std::vector<calib::Row> rows() const override {
    std::vector<calib::Row> rows;
    for (const auto& [g, tokens] : settings_) {
      rows.push_back(gpu_row(
          "gpu.attention", {{"tokens", tokens}, {"heads", heads}, {"dim", dim}, {"dtype", 16}},
          calib::Unit::flops_per_second, gpus_[g], gemm_ceiling(gpus_[g], DType::bf16)));
    }
    return rows;
  }

  void prepare() override {
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      std::size_t bytes = 0;
      for (const Setting& s : settings_) {
        if (s.station == g) bytes = std::max(bytes, s.in_all());
      }
      stations_.emplace_back(gpus_[g]);
      arenas_.emplace_back(gpus_[g].index, bytes);
    }
  }

  calib::Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    Station& station = stations_[s.station];
    const OnDevice here(station.gpu().index);
    const std::int64_t n = s.tokens;
    const Matmul scores(station.gpu().index, {n, n, dim, heads, DType::bf16}, 1);
    const Matmul sums(station.gpu().index, {n, dim, n, heads, DType::bf16}, 1, Weights::by_inputs);
    fill(s);
    const Timed timed =
        station.time(Seconds(0.1), Needs::multiprocessors, [&](int) { enqueue(s, scores, sums); });
    const Attention model{.heads = heads,
                          .kv_heads = heads,
                          .queries = n,
                          .keys = n,
                          .head_dim = dim,
                          .dtype = DType::bf16};
    return sample_of(flops_of(model).value(), timed, is_right(s));
  }

  void finish() override {
    arenas_.clear();
    stations_.clear();
  }

 private:
  // q, k, v, result, scores
  std::byte* at(const Setting& s, std::size_t part) {
    return arenas_[s.station].data() + part * s.each();
  }

  void fill(const Setting& s) {
    const Stream& stream = stations_[s.station].stream();
    for (std::uint32_t part = 0; part < 3; ++part)
      fill_uniform(stream, at(s, part), DType::bf16, s.each() / 2, seed_ + part);
    set_bytes(stream, at(s, 3), 0xFF, s.each() + s.scores());
    stream.wait();
  }

  void enqueue(const Setting& s, const Matmul& scores, const Matmul& sums) {
    const Stream& stream = stations_[s.station].stream();
    const auto rows = static_cast<std::size_t>(heads * s.tokens);
    const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(dim)));
    scores.enqueue(stream, 0, at(s, 0), at(s, 1), at(s, 4));
    causal_softmax(stream.handle(), at(s, 4), rows, static_cast<std::size_t>(s.tokens), factor);
    sums.enqueue(stream, 0, at(s, 4), at(s, 2), at(s, 3));
  }

  std::vector<std::byte> head_of(const Setting& s, std::size_t part, std::size_t head) {
    const std::size_t bytes = s.each() / heads;
    std::vector<std::byte> data(bytes);
    copy_now(gpus_[s.station].index, data.data(), at(s, part) + head * bytes, bytes);
    return data;
  }

  // The first rows, one in the middle and the last of two heads.
  bool is_right(const Setting& s) {
    const auto n = static_cast<std::size_t>(s.tokens);
    for (const std::size_t head : {std::size_t{0}, std::size_t{heads - 1}}) {
      const auto q = head_of(s, 0, head), k = head_of(s, 1, head), v = head_of(s, 2, head);
      const auto out = head_of(s, 3, head);
      for (const std::size_t i : {std::size_t{0}, std::size_t{1}, n / 2, n - 1}) {
        const std::vector<double> exact = attention_row(q, k, v, DType::bf16, dim, i);
        for (std::size_t d = 0; d < exact.size(); ++d) {
          const double value = decode(out, DType::bf16, i * dim + d);
          // A NaN that was never overwritten fails as well.
          if (!(std::abs(value - exact[d]) <= attention_tolerance(i))) return false;
        }
      }
    }
    return true;
  }

  std::vector<GpuFacts> gpus_;
  std::uint32_t seed_;
  std::vector<Setting> settings_;
  std::vector<Station> stations_;
  std::vector<DeviceBuffer> arenas_;
};

}  // namespace

std::string why_no_attention(const calib::Setup& setup) { return why_no_gemm(setup); }

std::unique_ptr<calib::Bench> make_attention(const calib::Setup& setup) {
  return std::make_unique<AttentionBench>(setup);
}

}  // namespace tidegate::cuda
