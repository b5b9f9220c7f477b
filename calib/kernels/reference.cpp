#include "calib/kernels/reference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "models/base/error.hpp"

namespace tidegate::cpu::reference {

double read(std::span<const float> a) {
  std::uint32_t sum = 0;
  for (const float x : a) sum += std::bit_cast<std::uint32_t>(x);
  return sum;
}

void triad(std::span<const float> b, std::span<const float> c, float scale, std::span<float> a) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = b[i] + scale * c[i];
}

void cast(std::span<const half> from, DType type, std::span<float> to) {
  ensure(type == DType::bf16 || type == DType::fp16, "a cast is between fp32 and bf16 or fp16");
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] = type == DType::bf16 ? from_bf16(from[i]) : from_fp16(from[i]);
  }
}

void cast(std::span<const float> from, DType type, std::span<half> to) {
  ensure(type == DType::bf16 || type == DType::fp16, "a cast is between fp32 and bf16 or fp16");
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] = type == DType::bf16 ? to_bf16(from[i]) : to_fp16(from[i]);
  }
}

void adam(std::span<float> parameters, std::span<float> first, std::span<float> second,
          std::span<const float> gradient, const AdamOptions& o) {
  const auto t = static_cast<double>(o.step);
  const double beta1 = double{o.beta1}, beta2 = double{o.beta2}, rate = double{o.rate};
  const auto rest1 = static_cast<float>(1 - beta1), rest2 = static_cast<float>(1 - beta2);
  const auto keep = static_cast<float>(1 - rate * double{o.decay});
  const auto step_rate = static_cast<float>(rate / (1 - std::pow(beta1, t)));
  const auto root = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float x = o.scale * gradient[i];
    first[i] = o.beta1 * first[i] + rest1 * x;
    second[i] = o.beta2 * second[i] + rest2 * x * x;
    const float denominator = root * std::sqrt(second[i]) + o.epsilon;
    parameters[i] = keep * parameters[i] - step_rate * first[i] / denominator;
  }
}

void adam(std::span<float> parameters, std::span<float> first, std::span<float> second,
          std::span<const half> gradient, DType type, std::span<half> out,
          const AdamOptions& options) {
  std::vector<float> widened(gradient.size());
  cast(gradient, type, widened);
  adam(parameters, first, second, widened, options);
  if (!out.empty()) cast(parameters, type, out);
}

double squared_norm(std::span<const float> a, bool& finite) {
  double sum = 0;
  finite = true;
  for (const float x : a) {
    finite = finite && std::isfinite(x);
    sum += double{x} * double{x};
  }
  return sum;
}

void multiply(const Product& p, const float* a, const float* b, float* c) {
  const std::int64_t to_row = p.a_is_transposed ? 1 : p.k, to_inner = p.a_is_transposed ? p.m : 1;
  for (std::int64_t i = 0; i < p.m; ++i) {
    float* row = c + i * p.n;
    if (!p.adds) std::fill_n(row, p.n, 0.0F);
    for (std::int64_t l = 0; l < p.k; ++l) {
      const float factor = a[i * to_row + l * to_inner];
      const float* column = p.b_is_transposed ? b + l : b + l * p.n;
      const std::int64_t step = p.b_is_transposed ? p.k : 1;
      for (std::int64_t j = 0; j < p.n; ++j) row[j] += factor * column[j * step];
    }
  }
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b,
          float* c) {
  multiply({.m = m, .n = n, .k = k}, a, b, c);
}

}  // namespace tidegate::cpu::reference
