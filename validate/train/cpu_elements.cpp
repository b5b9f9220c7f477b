#include <cmath>
#include <numbers>

#include "validate/train/cpu_backend.hpp"
#include "validate/train/matrix.hpp"

/// Products by name, and what is computed number by number.
namespace tidegate::train {

const Backend& cpu_backend() {
  static const CpuBackend cores;
  return cores;
}

std::string CpuBackend::products_text(DType type) const { return train::products_text(type); }

Values CpuBackend::times_transposed(std::span<const float> x, std::span<const float> w,
                                    const LinearShape& s, DType type) const {
  return train::times_transposed(x, w, s.rows, s.in, s.out, type);
}

void CpuBackend::add_input_gradient(std::span<const float> dy, std::span<const float> w,
                                    const LinearShape& s, DType type, std::span<float> dx) const {
  train::add_input_gradient(dy, w, s.rows, s.in, s.out, type, dx);
}

Values CpuBackend::weight_gradient(std::span<const float> dy, std::span<const float> x,
                                   const LinearShape& s, DType type) const {
  return train::weight_gradient(dy, x, s.rows, s.in, s.out, type);
}

Values CpuBackend::column_sums(std::span<const float> a, std::int64_t width) const {
  return train::column_sums(a, static_cast<std::int64_t>(a.size()) / width, width);
}

void CpuBackend::add_to_rows(std::span<float> y, std::span<const float> bias, DType type) const {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
  round_all(y, type);
}

void CpuBackend::round(std::span<float> values, DType type) const { round_all(values, type); }

void CpuBackend::add(std::span<float> to, std::span<const float> from, DType type) const {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  round_all(to, type);
}

Values CpuBackend::product(std::span<const float> a, std::span<const float> b, DType type) const {
  Values y(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) y[i] = rounded(a[i] * b[i], type);
  return y;
}

// Su et al. 2021 (RoPE). Its inverse is its transpose: backward turns the other way.
void CpuBackend::turn(std::span<float> values, const RotaryShape& s, double sign,
                      DType type) const {
  const auto all = static_cast<std::int64_t>(values.size()) / s.head_dim;
  for (std::int64_t h = 0; h < all; ++h) {
    const auto position = static_cast<double>(h / s.heads % s.sequence);
    float* head = values.data() + h * s.head_dim;
    for (std::int64_t i = 0; i < s.pairs; ++i) {
      const double exponent = static_cast<double>(i) / static_cast<double>(s.pairs);
      const double angle = position * std::pow(10000.0, -exponent);
      const double cosine = std::cos(angle), sine = sign * std::sin(angle);
      const double a = head[i], b = head[i + s.pairs];
      head[i] = static_cast<float>(a * cosine - b * sine);
      head[i + s.pairs] = static_cast<float>(b * cosine + a * sine);
    }
  }
  round_all(values, type);
}

Values CpuBackend::sum_groups(std::span<const float> all, std::int64_t group, std::int64_t head_dim,
                              DType type) const {
  Values sums(all.size() / static_cast<std::size_t>(group));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto head = static_cast<std::int64_t>(i) / head_dim;
    sums[static_cast<std::size_t>(head / group * head_dim) +
         i % static_cast<std::size_t>(head_dim)] += all[i];
  }
  round_all(sums, type);
  return sums;
}

namespace {

// gelu(x) = x Φ(x) (Hendrycks and Gimpel 2016), silu(x) = x / (1 + e^-x).
double value(Activation kind, double x) {
  switch (kind) {
    case Activation::gelu:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::relu:
      return x > 0 ? x : 0;
  }
  return 0;
}

double slope(Activation kind, double x) {
  switch (kind) {
    case Activation::gelu:
      return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) +
             x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    case Activation::silu: {
      const double s = 1 / (1 + std::exp(-x));
      return s * (1 + x * (1 - s));
    }
    case Activation::relu:
      return x > 0 ? 1 : 0;
  }
  return 0;
}

}  // namespace

Values CpuBackend::activated(Activation kind, std::span<const float> x, DType type) const {
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] = rounded(static_cast<float>(value(kind, x[i])), type);
  return y;
}

Values CpuBackend::through_activation(Activation kind, std::span<const float> dy,
                                      std::span<const float> x, DType type) const {
  Values dx(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    dx[i] = rounded(static_cast<float>(dy[i] * slope(kind, x[i])), type);
  return dx;
}

void CpuBackend::adam(std::span<float> parameters, std::span<float> first, std::span<float> second,
                      std::span<const float> gradient, const cpu::AdamOptions& options) const {
  constexpr int one_thread = 1;  // ranks are threads or processes of their own
  cpu::adam(parameters, first, second, gradient, options, one_thread);
}

void CpuBackend::sgd(std::span<float> parameters, std::span<const float> gradient, float rate,
                     float scale) const {
  for (std::size_t i = 0; i < gradient.size(); ++i) parameters[i] -= rate * (scale * gradient[i]);
}

}  // namespace tidegate::train
