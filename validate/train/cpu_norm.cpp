#include <cmath>

#include "validate/train/cpu_backend.hpp"

/// Layer norm (Ba, Kiros and Hinton 2016) and RMS norm (Zhang and Sennrich 2019).
///
///   y = (x - mean) / sqrt(variance + epsilon) · weight + bias, or x / sqrt(mean(x²) + epsilon) ·
///   weight
///
/// Backward reads x again and computes the statistics of each row anew. With z the normalised value
/// and g = dy · weight:  dx = (g - mean(g) - z mean(g z)) / deviation; RMS norm without mean(g).
namespace tidegate::train {
namespace {

constexpr double epsilon = 1e-5;  // default of torch.nn.LayerNorm; of Llama's RMS norm too

struct Row {
  double mean = 0, inverse = 0;
};

Row statistics(std::span<const float> x, Centring centring) {
  const auto n = static_cast<double>(x.size());
  double sum = 0, squares = 0;
  for (const float v : x) sum += v;
  const double mean = centring == Centring::mean ? sum / n : 0;
  for (const float v : x) squares += (v - mean) * (v - mean);
  return {mean, 1 / std::sqrt(squares / n + epsilon)};
}

void row_backward(std::span<const float> x, std::span<const float> dy,
                  std::span<const float> weight, Centring centring, std::span<float> dx,
                  std::span<float> normalized) {
  const Row row = statistics(x, centring);
  const auto n = static_cast<double>(x.size());
  double mean_g = 0, mean_gz = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    normalized[i] = static_cast<float>((x[i] - row.mean) * row.inverse);
    const double g = static_cast<double>(dy[i]) * weight[i];
    mean_g += g / n;
    mean_gz += g * normalized[i] / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double g = static_cast<double>(dy[i]) * weight[i];
    const double centred = centring == Centring::mean ? g - mean_g : g;
    dx[i] = static_cast<float>((centred - normalized[i] * mean_gz) * row.inverse);
  }
}

}  // namespace

Normed CpuBackend::norm(std::span<const float> x, std::span<const float> weight,
                        std::span<const float> bias, Centring centring, DType type) const {
  const std::size_t width = weight.size();
  Normed made{.y = Values(x.size()), .normalized = Values(x.size())};
  for (std::size_t at = 0; at < x.size(); at += width) {
    const Row row = statistics(x.subspan(at, width), centring);
    for (std::size_t i = 0; i < width; ++i) {
      made.normalized[at + i] = static_cast<float>((x[at + i] - row.mean) * row.inverse);
      made.y[at + i] = made.normalized[at + i] * weight[i];
      if (!bias.empty()) made.y[at + i] += bias[i];
    }
  }
  round_all(made.y, type);
  return made;
}

NormGradients CpuBackend::norm_backward(std::span<const float> x, std::span<const float> dy,
                                        std::span<const float> weight,
                                        std::span<const float> normalized, Centring centring,
                                        DType type) const {
  const std::size_t width = weight.size();
  NormGradients made{.x = Values(x.size()), .weight = Values(width), .bias = Values(width)};
  Values again(x.size());
  for (std::size_t at = 0; at < x.size(); at += width) {
    row_backward(x.subspan(at, width), dy.subspan(at, width), weight, centring,
                 std::span(made.x).subspan(at, width), std::span(again).subspan(at, width));
  }
  const std::span<const float> z = normalized.empty() ? again : normalized;
  for (std::size_t i = 0; i < x.size(); ++i) {
    made.weight[i % width] += dy[i] * z[i];
    made.bias[i % width] += dy[i];
  }
  round_all(made.x, type);
  return made;
}

}  // namespace tidegate::train
