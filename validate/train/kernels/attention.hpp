#pragma once

#include <cmath>
#include <cstdint>

#include "validate/train/kernels/rounding.hpp"

/// Kernels of attention (cpu_attention.cpp has the equations). A thread owns what it writes: in
/// forward and for q a query of a head, for k and v a key of a head, which walks all queries that
/// attend to it. No scores are kept in memory on the way; each is computed again where it is
/// needed.
namespace tidegate::train::kernels {

struct Geometry {
  std::int64_t batch, length, heads, kv_heads, head_dim, window;
  double scale;  // 1 / sqrt(head_dim)

  TIDEGATE_KERNEL std::int64_t first_key(std::int64_t query) const {
    return window > 0 && query >= window ? query - window + 1 : 0;
  }
  /// One after the last query that attends to a key.
  TIDEGATE_KERNEL std::int64_t end_of_queries(std::int64_t key) const {
    return window > 0 && key + window < length ? key + window : length;
  }
};

/// A row of [batch, heads, length]: which query of which head, and where it stands.
struct Query {
  TIDEGATE_KERNEL Query(const Geometry& g, std::int64_t number)
      : row(number),
        token(number % g.length),
        head(number / g.length % g.heads),
        first_token(number / g.length / g.heads * g.length) {}
  std::int64_t row, token, head, first_token;

  TIDEGATE_KERNEL std::int64_t place(const Geometry& g) const {
    return ((first_token + token) * g.heads + head) * g.head_dim;
  }
  TIDEGATE_KERNEL std::int64_t place_of_key(const Geometry& g, std::int64_t key) const {
    return ((first_token + key) * g.kv_heads + head / (g.heads / g.kv_heads)) * g.head_dim;
  }
};

TIDEGATE_KERNEL inline double dot(const float* a, const float* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}
TIDEGATE_KERNEL inline void add_scaled(float* to, const float* from, double factor,
                                       std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += static_cast<float>(factor * from[i]);
}
TIDEGATE_KERNEL inline void clear(float* at, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) at[i] = 0;
}
TIDEGATE_KERNEL inline void round_row(float* at, std::int64_t n, Format format) {
  for (std::int64_t i = 0; i < n; ++i) at[i] = rounded(at[i], format);
}

/// i: a query of a head.
struct AttentionForward {
  const float *q, *k, *v;
  float *out, *log_sums, *softmax;  // of the last two the one that is kept, else null
  Geometry g;
  Format format;

  TIDEGATE_KERNEL double score(const Query& query, std::int64_t key) const {
    return g.scale * dot(q + query.place(g), k + query.place_of_key(g, key), g.head_dim);
  }
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    const Query query(g, i);
    const std::int64_t first = g.first_key(query.token);
    double most = score(query, first), sum = 0;
    for (std::int64_t j = first + 1; j <= query.token; ++j) {
      const double s = score(query, j);
      most = s > most ? s : most;
    }
    for (std::int64_t j = first; j <= query.token; ++j) sum += std::exp(score(query, j) - most);
    float* const to = out + query.place(g);
    clear(to, g.head_dim);
    for (std::int64_t j = 0; softmax != nullptr && j < g.length; ++j) softmax[i * g.length + j] = 0;
    for (std::int64_t j = first; j <= query.token; ++j) {
      auto share = static_cast<float>(std::exp(score(query, j) - most) / sum);
      if (softmax != nullptr) softmax[i * g.length + j] = share = rounded(share, format);
      add_scaled(to, v + query.place_of_key(g, j), share, g.head_dim);
    }
    if (log_sums != nullptr) log_sums[i] = static_cast<float>(most + std::log(sum));
    round_row(to, g.head_dim, format);
  }
};

/// What both kernels of backward read.
struct AttentionShares {
  const float *q, *k, *v, *dout;
  const float *log_sums, *softmax;  // the one that was kept, else null
  Geometry g;

  TIDEGATE_KERNEL double share(const Query& query, std::int64_t key) const {
    if (softmax != nullptr) return softmax[query.row * g.length + key];
    const double score =
        g.scale * dot(q + query.place(g), k + query.place_of_key(g, key), g.head_dim);
    return std::exp(score - log_sums[query.row]);
  }
  TIDEGATE_KERNEL double of_value(const Query& query, std::int64_t key) const {
    return dot(dout + query.place(g), v + query.place_of_key(g, key), g.head_dim);
  }
};

/// i: a query of a head. Leaves its sum of p_ij g_ij for the keys.
struct AttentionQueries {
  AttentionShares in;
  float* dq;
  double* inner;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    const Geometry& g = in.g;
    const Query query(g, i);
    const std::int64_t first = g.first_key(query.token);
    double sum = 0;
    for (std::int64_t j = first; j <= query.token; ++j)
      sum += in.share(query, j) * in.of_value(query, j);
    inner[i] = sum;
    float* const to = dq + query.place(g);
    clear(to, g.head_dim);
    for (std::int64_t j = first; j <= query.token; ++j) {
      const double ds = g.scale * in.share(query, j) * (in.of_value(query, j) - sum);
      add_scaled(to, in.k + query.place_of_key(g, j), ds, g.head_dim);
    }
    round_row(to, g.head_dim, format);
  }
};

/// i: a key of a head, of [batch, kv_heads, length].
struct AttentionKeys {
  AttentionShares in;
  const double* inner;
  float *dk, *dv;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    const Geometry& g = in.g;
    const std::int64_t key = i % g.length, kv_head = i / g.length % g.kv_heads,
                       batch = i / g.length / g.kv_heads, group = g.heads / g.kv_heads;
    const std::int64_t place = ((batch * g.length + key) * g.kv_heads + kv_head) * g.head_dim;
    clear(dk + place, g.head_dim);
    clear(dv + place, g.head_dim);
    for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      for (std::int64_t t = key; t < g.end_of_queries(key); ++t) {
        const Query query(g, (batch * g.heads + h) * g.length + t);
        const double p = in.share(query, key);
        const double ds = g.scale * p * (in.of_value(query, key) - inner[query.row]);
        add_scaled(dv + place, in.dout + query.place(g), p, g.head_dim);
        add_scaled(dk + place, in.q + query.place(g), ds, g.head_dim);
      }
    }
    round_row(dk + place, g.head_dim, format);
    round_row(dv + place, g.head_dim, format);
  }
};

}  // namespace tidegate::train::kernels
