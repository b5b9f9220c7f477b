#include <algorithm>
#include <cmath>

#include "validate/train/parts.hpp"

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
  explicit Core(const Site& s)
      : site(s),
        length(s.workload.sequence),
        window(s.workload.network.sliding_window),
        queries{s.workload.network.heads, s.workload.network.head_dim},
        keys{s.workload.kernels.flash_attention ? s.workload.network.kv_heads
                                                : s.workload.network.heads,
             s.workload.network.head_dim},
        group(queries.count / keys.count),
        scale(1 / std::sqrt(static_cast<double>(queries.dim))) {}
  const Site& site;
  std::int64_t length, window;
  Heads queries, keys;
  std::int64_t group;
  double scale;

  std::int64_t first_key(std::int64_t i) const {
    return window > 0 ? std::max<std::int64_t>(0, i - window + 1) : 0;
  }
  std::size_t row(std::int64_t batch, std::int64_t head, std::int64_t i) const {
    return static_cast<std::size_t>((batch * queries.count + head) * length + i);
  }
  /// visit(batch, head, query i)
  template <class Visit>
  void each_query(Visit visit) const {
    for (std::int64_t b = 0; b < site.workload.micro_batch; ++b) {
      for (std::int64_t h = 0; h < queries.count; ++h) {
        for (std::int64_t i = 0; i < length; ++i) visit(b, h, i);
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

struct Projected {
  Values q, k, v;
};
Projected projected(const Site& site, const Storages& storages) {
  return {site.saved(storages, "q"), site.saved(storages, "k"), site.saved(storages, "v")};
}

// Scores of query i over its keys, [length], the rest is not touched.
void scores_of(const Core& core, const Projected& in, std::int64_t b, std::int64_t h,
               std::int64_t i, std::span<double> scores) {
  const float* q = in.q.data() + core.queries.at(b * core.length + i, h);
  for (std::int64_t j = core.first_key(i); j <= i; ++j) {
    const float* k = in.k.data() + core.keys.at(b * core.length + j, h / core.group);
    scores[static_cast<std::size_t>(j)] = core.scale * dot(q, k, core.queries.dim);
  }
}

}  // namespace

void attention(const Site& site, const Tensors&, Flow& flow, Storages& storages) {
  const Core core(site);
  const Projected in = projected(site, storages);
  const bool keeps_softmax = site.saves("softmax_output");
  const auto length = static_cast<std::size_t>(core.length);
  const std::size_t rows = core.row(site.workload.micro_batch, 0, 0);
  Values out(in.q.size()), sums(rows), softmax(keeps_softmax ? rows * length : 0);
  std::vector<double> p(length);
  core.each_query([&](std::int64_t b, std::int64_t h, std::int64_t i) {
    scores_of(core, in, b, h, i, p);
    const auto first = p.begin() + core.first_key(i), end = p.begin() + i + 1;
    const double most = *std::max_element(first, end);
    double sum = 0;
    for (auto s = first; s != end; ++s) sum += std::exp(*s - most);
    const std::size_t row = core.row(b, h, i);
    sums[row] = static_cast<float>(most + std::log(sum));
    for (std::int64_t j = core.first_key(i); j <= i; ++j) {
      const auto at = static_cast<std::size_t>(j);
      auto share = static_cast<float>(std::exp(p[at] - most) / sum);
      if (keeps_softmax) {
        share = rounded(share, site.workload.dtype);
        softmax[row * length + at] = share;
      }
      add_scaled(out.data() + core.queries.at(b * core.length + i, h),
                 in.v.data() + core.keys.at(b * core.length + j, h / core.group), share,
                 core.queries.dim);
    }
  });
  if (site.saves("log_sum_exp")) site.save(storages, "log_sum_exp", sums);
  if (keeps_softmax) site.save(storages, "softmax_output", softmax);
  round_all(out, site.workload.dtype);
  flow.branch = std::move(out);
  flow.q.clear(), flow.k.clear(), flow.v.clear();
}

namespace {

// p of one query, from the storage or made again.
struct Shares {
  const Core& core;
  const Projected& in;
  Values kept;  // softmax, or logarithms of sums
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

Tensors attention_backward(const Site& site, const Tensors&, Flow& flow, const Storages& storages) {
  const Core core(site);
  const Projected in = projected(site, storages);
  const bool is_softmax = site.saves("softmax_output");
  const Shares shares{core, in, site.saved(storages, is_softmax ? "softmax_output" : "log_sum_exp"),
                      is_softmax};
  const auto length = static_cast<std::size_t>(core.length);
  const std::int64_t d = core.queries.dim;
  Values dq(in.q.size()), dk(in.k.size()), dv(in.v.size());
  std::vector<double> p(length), g(length);
  core.each_query([&](std::int64_t b, std::int64_t h, std::int64_t i) {
    shares.of(b, h, i, p);
    const std::size_t query = core.queries.at(b * core.length + i, h);
    const float* dout = flow.branch.data() + query;
    double inner = 0;
    for (std::int64_t j = core.first_key(i); j <= i; ++j) {
      const std::size_t key = core.keys.at(b * core.length + j, h / core.group);
      const auto at = static_cast<std::size_t>(j);
      g[at] = dot(dout, in.v.data() + key, d);
      inner += p[at] * g[at];
      add_scaled(dv.data() + key, dout, p[at], d);
    }
    for (std::int64_t j = core.first_key(i); j <= i; ++j) {
      const std::size_t key = core.keys.at(b * core.length + j, h / core.group);
      const auto at = static_cast<std::size_t>(j);
      const double ds = core.scale * p[at] * (g[at] - inner);
      add_scaled(dq.data() + query, in.k.data() + key, ds, d);
      add_scaled(dk.data() + key, in.q.data() + query, ds, d);
    }
  });
  for (Values* gradient : {&dq, &dk, &dv}) round_all(*gradient, site.workload.dtype);
  flow.q = std::move(dq), flow.k = std::move(dk), flow.v = std::move(dv);
  flow.branch.clear();
  return {};
}

}  // namespace tidegate::train
