#include <omp.h>

#include <algorithm>
#include <cmath>

#include "calib/kernels/products.hpp"
#include "calib/kernels/slices.hpp"
#include "models/base/error.hpp"

namespace tidegate::cpu {
namespace {

// Queries of a block: 64 rows of 2048 scores are half a megabyte, a part of today's second-level
// caches.
constexpr std::int64_t block = 64;

// Rows [first, last) of a head over its first `keys` keys, with their scores at `at`.
struct Piece {
  std::int64_t head, first, last, keys, at;
  std::int64_t rows() const { return last - first; }
};

template <class T>
struct Operands {
  const HeadsOfAttention& shape;
  const T *q, *k, *v;
  DType type;
  float* scores;
  T* probabilities;  // fp32: the scores themselves
  float* out;

  void product(const Product& p, const T* a, const T* b, float* c) const {
    if constexpr (sizeof(T) == sizeof(float)) {
      multiply(p, a, b, c, 1);
    } else {
      multiply(p, a, b, type, c, 1);
    }
  }
  std::int64_t row(const Piece& p) const { return (p.head * shape.tokens + p.first) * shape.dim; }
  std::int64_t head(const Piece& p) const { return p.head * shape.tokens * shape.dim; }

  void score(const Piece& p) const {
    product({.m = p.rows(), .n = p.keys, .k = shape.dim, .b_is_transposed = true}, q + row(p),
            k + head(p), scores + p.at);
  }
  void normalize(const Piece& p) const {
    const auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(shape.dim)));
    for (std::int64_t i = p.first; i < p.last; ++i) {
      const std::int64_t start = p.at + (i - p.first) * p.keys;
      slices().softmax(scores + start, static_cast<std::size_t>(i + 1), factor);
      std::fill(scores + start + i + 1, scores + start + p.keys, 0.0F);
      if constexpr (sizeof(T) != sizeof(float)) {
        const auto narrow = type == DType::bf16 ? slices().to_bf16 : slices().to_fp16;
        narrow(scores + start, probabilities + start, static_cast<std::size_t>(p.keys));
      }
    }
  }
  void sum(const Piece& p) const {
    product({.m = p.rows(), .n = shape.dim, .k = p.keys}, probabilities + p.at, v + head(p),
            out + row(p));
  }
};

template <class Do>
void each(std::int64_t count, int threads, const Do& once) {
#pragma omp parallel for num_threads(threads) schedule(dynamic)
  for (std::int64_t i = 0; i < count; ++i) once(i);
}

template <class T>
void in_memory(const Operands<T>& o, int threads) {
  const std::int64_t n = o.shape.tokens;
  const auto piece = [n](std::int64_t head) { return Piece{head, 0, n, n, head * n * n}; };
  each(o.shape.heads, threads, [&](std::int64_t head) { o.score(piece(head)); });
  each(o.shape.heads, threads, [&](std::int64_t head) { o.normalize(piece(head)); });
  each(o.shape.heads, threads, [&](std::int64_t head) { o.sum(piece(head)); });
}

template <class T>
void in_cache(const Operands<T>& o, int threads) {
  const std::int64_t n = o.shape.tokens, blocks = (n + block - 1) / block;
  each(o.shape.heads * blocks, threads, [&](std::int64_t i) {
    const std::int64_t first = i % blocks * block, last = std::min(n, first + block);
    const Piece piece{i / blocks, first, last, last, omp_get_thread_num() * block * n};
    o.score(piece), o.normalize(piece), o.sum(piece);
  });
}

template <class T>
void run(const Operands<T>& o, Scores kind, int threads) {
  ensure(threads >= 1 && o.shape.tokens >= 0 && o.shape.heads >= 0 && o.shape.dim >= 1,
         "an attention has sizes and a thread");
  // The BLAS counts its threads for all callers: one each, told before there are several.
  if constexpr (sizeof(T) == sizeof(float)) multiply({}, o.q, o.k, o.out, 1);
  kind == Scores::in_memory ? in_memory(o, threads) : in_cache(o, threads);
}

}  // namespace

std::int64_t score_count(const HeadsOfAttention& h, Scores scores, int threads) {
  if (scores == Scores::in_memory) return h.heads * h.tokens * h.tokens;
  return threads * block * h.tokens;
}

void attention(const HeadsOfAttention& shape, Scores kind, const float* q, const float* k,
               const float* v, float* scores, float* out, int threads) {
  run(Operands<float>{shape, q, k, v, DType::fp32, scores, scores, out}, kind, threads);
}

void attention(const HeadsOfAttention& shape, Scores kind, const half* q, const half* k,
               const half* v, DType type, float* scores, half* probabilities, float* out,
               int threads) {
  ensure(type != DType::fp32 && multiplies(type), "the CPU multiplies matrices of the type");
  run(Operands<half>{shape, q, k, v, type, scores, probabilities, out}, kind, threads);
}

}  // namespace tidegate::cpu
