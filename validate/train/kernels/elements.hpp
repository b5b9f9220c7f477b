#pragma once

#include <cmath>
#include <cstdint>

#include "validate/train/kernels/rounding.hpp"

/// Kernels that do one number, pair or column each; i is which.
namespace tidegate::train::kernels {

/// Operands of a product.
struct Narrow {
  const float* from;
  std::uint16_t* to;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    to[i] = format == Format::bf16 ? bf16_of(from[i]) : fp16_of(from[i]);
  }
};

struct Round {
  float* values;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const { values[i] = rounded(values[i], format); }
};

struct Add {
  float* to;
  const float* from;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    to[i] = rounded(to[i] + from[i], format);
  }
};

struct AddToRows {
  float* y;
  const float* bias;
  std::int64_t width;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    y[i] = rounded(y[i] + bias[i % width], format);
  }
};

struct Multiply {
  const float *a, *b;
  float* y;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const { y[i] = rounded(a[i] * b[i], format); }
};

/// i: a column.
struct ColumnSums {
  const float* a;
  float* sums;
  std::int64_t rows, width;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    float sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) sum += a[r * width + i];
    sums[i] = sum;
  }
};

enum class Curve : std::uint8_t { gelu, silu, relu };
constexpr double root_two = 1.4142135623730951, root_two_pi = 2.5066282746310002;

TIDEGATE_KERNEL inline double value_of(Curve curve, double x) {
  if (curve == Curve::gelu) return 0.5 * x * (1 + std::erf(x / root_two));
  if (curve == Curve::silu) return x / (1 + std::exp(-x));
  return x > 0 ? x : 0;
}

TIDEGATE_KERNEL inline double slope_of(Curve curve, double x) {
  if (curve == Curve::gelu) {
    const double below = 0.5 * (1 + std::erf(x / root_two));
    return below + x * std::exp(-x * x / 2) / root_two_pi;
  }
  if (curve == Curve::silu) {
    const double s = 1 / (1 + std::exp(-x));
    return s * (1 + x * (1 - s));
  }
  return x > 0 ? 1 : 0;
}

struct Activate {
  const float* x;
  float* y;
  Curve curve;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    y[i] = rounded(static_cast<float>(value_of(curve, x[i])), format);
  }
};

struct ActivateBackward {
  const float *dy, *x;
  float* dx;
  Curve curve;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    dx[i] = rounded(static_cast<float>(dy[i] * slope_of(curve, x[i])), format);
  }
};

/// i: a head of a token.
struct Turn {
  float* values;
  std::int64_t sequence, heads, head_dim, pairs;
  double sign;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    float* const head = values + i * head_dim;
    const auto position = static_cast<double>(i / heads % sequence);
    for (std::int64_t p = 0; p < pairs; ++p) {
      const double part = static_cast<double>(p) / static_cast<double>(pairs);
      const double angle = position * std::pow(10000.0, -part);
      const double cosine = std::cos(angle), sine = sign * std::sin(angle);
      const double a = head[p], b = head[p + pairs];
      head[p] = rounded(static_cast<float>(a * cosine - b * sine), format);
      head[p + pairs] = rounded(static_cast<float>(b * cosine + a * sine), format);
    }
    for (std::int64_t d = 2 * pairs; d < head_dim; ++d) head[d] = rounded(head[d], format);
  }
};

/// i: a number of the sums.
struct SumGroups {
  const float* all;
  float* sums;
  std::int64_t group, head_dim;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t head = i / head_dim, d = i % head_dim;
    float sum = 0;
    for (std::int64_t g = 0; g < group; ++g) sum += all[(head * group + g) * head_dim + d];
    sums[i] = rounded(sum, format);
  }
};

/// p = keep · p - (rate · m) / (root · sqrt(v) + epsilon), after m = beta1 · m + rest1 · x and
/// v = beta2 · v + (rest2 · x) · x with x = scale · g: calib/kernels' step, operation by operation.
struct Adam {
  float *p, *m, *v;
  const float* g;
  float scale, beta1, rest1, beta2, rest2, keep, rate, root, epsilon;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    const float x = scale * g[i];
    m[i] = beta1 * m[i] + rest1 * x;
    v[i] = beta2 * v[i] + rest2 * x * x;
    p[i] = keep * p[i] - rate * m[i] / (root * std::sqrt(v[i]) + epsilon);
  }
};

struct Sgd {
  float* p;
  const float* g;
  float rate, scale;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const { p[i] -= rate * (scale * g[i]); }
};

}  // namespace tidegate::train::kernels
