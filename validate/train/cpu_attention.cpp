#include <algorithm>
#include <cmath>

#include "validate/train/cpu_backend.hpp"

/// Causal attention of grouped heads, out_i = sum over j <= i of p_ij v_j with
/// p_ij = exp(scale q_i·k_j - l_i), scale = 1 / sqrt(head_dim), l_i the logarithm of the sum; under
/// a sliding window w, j > i - w.
///
/// Backward, with do_i the output's gradient and g_ij = do_i·v_j:
///   dv_j += p_ij do_i,  ds_ij = p_ij (g_ij - sum over j of p_ij g_ij),  dq_i += scale ds_ij k_j,
///   dk_j += scale ds_ij q_i
/// A flash kernel keeps l and makes p again (Dao et al. 2022, algorithm 4); it takes the inner sum
/// from the output, do_i·out_i, which is the same number: the graph lists the output with the
/// projection behind, so here the sum is taken over j. The other core keeps p.
namespace tidegate::train {
namespace {

// Where row r of a head stands: [tokens, heads, head_dim].
struct Heads {
  std::int64_t count, dim;
  std::size_t at(std::int64_t token, std::int64_t head) const {
    return static_cast<std::size_t>((token * count + head) * dim);
  }
};

struct Core {
  explicit Core(const AttentionShape& s)
      : shape(s),
        queries{s.heads, s.head_dim},
        keys{s.kv_heads, s.head_dim},
        group(s.heads / s.kv_heads),
        scale(1 / std::sqrt(static_cast<double>(s.head_dim))) {}
  AttentionShape shape;
  Heads queries, keys;
  std::int64_t group;
  double scale;

  std::int64_t first_key(std::int64_t i) const {
    return shape.window > 0 ? std::max<std::int64_t>(0, i - shape.window + 1) : 0;
  }
  std::size_t row(std::int64_t batch, std::int64_t head, std::int64_t i) const {
    return static_cast<std::size_t>((batch * queries.count + head) * shape.length + i);
  }
  /// visit(batch, head, query i)
  template <class Visit>
  void each_query(Visit visit) const {
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      for (std::int64_t h = 0; h < queries.count; ++h) {
        for (std::int64_t i = 0; i < shape.length; ++i) visit(b, h, i);
      }
    }
  }
};

double dot(const float* a, const float* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

void add_scaled(float* to, const float* from, double factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += static_cast<float>(factor * from[i]);
}

// Scores of query i over its keys, [length], the rest is not touched.
void scores_of(const Core& core, const Projected& in, std::int64_t b, std::int64_t h,
               std::int64_t i, std::span<double> scores) {
  const float* q = in.q.data() + core.queries.at(b * core.shape.length + i, h);
  for (std::int64_t j = core.first_key(i); j <= i; ++j) {
    const float* k = in.k.data() + core.keys.at(b * core.shape.length + j, h / core.group);
    scores[static_cast<std::size_t>(j)] = core.scale * dot(q, k, core.queries.dim);
  }
}

}  // namespace

Attended CpuBackend::attention(const Projected& in, const AttentionShape& shape, KeptScores keeps,
                               DType type) const {
  const Core core(shape);
  const bool keeps_softmax = keeps == KeptScores::softmax;
  const auto length = static_cast<std::size_t>(shape.length);
  const std::size_t rows = core.row(shape.batch, 0, 0);
  Values out(in.q.size()), kept(keeps_softmax ? rows * length : rows);
  std::vector<double> p(length);
  core.each_query([&](std::int64_t b, std::int64_t h, std::int64_t i) {
    scores_of(core, in, b, h, i, p);
    const auto first = p.begin() + core.first_key(i), end = p.begin() + i + 1;
    const double most = *std::max_element(first, end);
    double sum = 0;
    for (auto s = first; s != end; ++s) sum += std::exp(*s - most);
    const std::size_t row = core.row(b, h, i);
    if (!keeps_softmax) kept[row] = static_cast<float>(most + std::log(sum));
    for (std::int64_t j = core.first_key(i); j <= i; ++j) {
      const auto at = static_cast<std::size_t>(j);
      auto share = static_cast<float>(std::exp(p[at] - most) / sum);
      if (keeps_softmax) {
        share = rounded(share, type);
        kept[row * length + at] = share;
      }
      add_scaled(out.data() + core.queries.at(b * shape.length + i, h),
                 in.v.data() + core.keys.at(b * shape.length + j, h / core.group), share,
                 shape.head_dim);
    }
  });
  round_all(out, type);
  return {.out = std::move(out), .kept = std::move(kept)};
}

namespace {

// p of one query, from what was kept or made again.
struct Shares {
  const Core& core;
  const Projected& in;
  std::span<const float> kept;  // softmax, or logarithms of sums
  bool is_softmax;
  void of(std::int64_t b, std::int64_t h, std::int64_t i, std::span<double> p) const {
    const std::size_t row = core.row(b, h, i);
    if (!is_softmax) scores_of(core, in, b, h, i, p);
    for (std::int64_t j = core.first_key(i); j <= i; ++j) {
      const auto at = static_cast<std::size_t>(j);
      p[at] = is_softmax ? kept[row * p.size() + at] : std::exp(p[at] - kept[row]);
    }
  }
};

}  // namespace

ProjectedGradients CpuBackend::attention_backward(const Projected& in, std::span<const float> dout,
                                                  std::span<const float> kept,
                                                  const AttentionShape& shape, KeptScores keeps,
                                                  DType type) const {
  const Core core(shape);
  const Shares shares{core, in, kept, keeps == KeptScores::softmax};
  const auto length = static_cast<std::size_t>(shape.length);
  const std::int64_t d = shape.head_dim;
  ProjectedGradients made{Values(in.q.size()), Values(in.k.size()), Values(in.v.size())};
  std::vector<double> p(length), g(length);
  core.each_query([&](std::int64_t b, std::int64_t h, std::int64_t i) {
    shares.of(b, h, i, p);
    const std::size_t query = core.queries.at(b * shape.length + i, h);
    double inner = 0;
    for (std::int64_t j = core.first_key(i); j <= i; ++j) {
      const std::size_t key = core.keys.at(b * shape.length + j, h / core.group);
      const auto at = static_cast<std::size_t>(j);
      g[at] = dot(dout.data() + query, in.v.data() + key, d);
      inner += p[at] * g[at];
      add_scaled(made.v.data() + key, dout.data() + query, p[at], d);
    }
    for (std::int64_t j = core.first_key(i); j <= i; ++j) {
      const std::size_t key = core.keys.at(b * shape.length + j, h / core.group);
      const auto at = static_cast<std::size_t>(j);
      const double ds = core.scale * p[at] * (g[at] - inner);
      add_scaled(made.q.data() + query, in.k.data() + key, ds, d);
      add_scaled(made.k.data() + key, in.q.data() + query, ds, d);
    }
  });
  for (Values* gradient : {&made.q, &made.k, &made.v}) round_all(*gradient, type);
  return made;
}

}  // namespace tidegate::train
