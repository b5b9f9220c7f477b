#pragma once

#include <cmath>
#include <cstdint>

#include "validate/train/kernels/rounding.hpp"

/// Kernels of norms, embedding and loss. One thread does a row or a column from its begin to its
/// end, so that a sum has one order.
namespace tidegate::train::kernels {

struct RowStatistics {
  double mean, inverse;
};
TIDEGATE_KERNEL inline RowStatistics statistics_of(const float* x, std::int64_t width,
                                                   bool is_centred) {
  constexpr double epsilon = 1e-5;  // as the CPU's norm
  const auto n = static_cast<double>(width);
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += x[i];
  const double mean = is_centred ? sum / n : 0;
  for (std::int64_t i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, 1 / std::sqrt(squares / n + epsilon)};
}

/// i: a row.
struct Norm {
  const float *x, *weight, *bias;  // bias: or null
  float *y, *normalized;
  std::int64_t width;
  bool is_centred;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    const float* const row = x + i * width;
    const RowStatistics s = statistics_of(row, width, is_centred);
    for (std::int64_t c = 0; c < width; ++c) {
      const auto z = static_cast<float>((row[c] - s.mean) * s.inverse);
      const float scaled = z * weight[c];
      normalized[i * width + c] = z;
      y[i * width + c] = rounded(bias != nullptr ? scaled + bias[c] : scaled, format);
    }
  }
};

/// i: a row. Writes the input's gradient, and the normalised row again.
struct NormBackward {
  const float *x, *dy, *weight;
  float *dx, *normalized;
  std::int64_t width;
  bool is_centred;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    const float *const row = x + i * width, *const back = dy + i * width;
    float* const z = normalized + i * width;
    const RowStatistics s = statistics_of(row, width, is_centred);
    const auto n = static_cast<double>(width);
    double mean_g = 0, mean_gz = 0;
    for (std::int64_t c = 0; c < width; ++c) {
      z[c] = static_cast<float>((row[c] - s.mean) * s.inverse);
      const double g = static_cast<double>(back[c]) * weight[c];
      mean_g += g / n;
      mean_gz += g * z[c] / n;
    }
    for (std::int64_t c = 0; c < width; ++c) {
      const double g = static_cast<double>(back[c]) * weight[c];
      const double centred = is_centred ? g - mean_g : g;
      dx[i * width + c] =
          rounded(static_cast<float>((centred - z[c] * mean_gz) * s.inverse), format);
    }
  }
};

/// i: a column.
struct NormParameters {
  const float *dy, *normalized;
  float *dweight, *dbias;
  std::int64_t rows, width;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    float weight = 0, bias = 0;
    for (std::int64_t at = i; at < rows * width; at += width) {
      weight += dy[at] * normalized[at];
      bias += dy[at];
    }
    dweight[i] = weight;
    dbias[i] = bias;
  }
};

/// i: a number of the stream [tokens, hidden].
struct Embed {
  const std::int32_t* ids;
  const float *table, *positions;  // positions: or null
  float* stream;
  std::int64_t hidden, sequence;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t token = i / hidden, column = i % hidden;
    const float of_token = table[ids[token] * hidden + column];
    const float sum =
        positions == nullptr ? of_token : of_token + positions[token % sequence * hidden + column];
    stream[i] = rounded(sum, format);
  }
};

/// i: a column of the tables. Tokens follow one another, so that no two meet in a row.
struct EmbedBackward {
  const std::int32_t* ids;
  const float* dy;
  float *table, *positions;  // positions: or null
  std::int64_t tokens, hidden, sequence;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    for (std::int64_t t = 0; t < tokens; ++t) {
      const float d = dy[t * hidden + i];
      table[ids[t] * hidden + i] += d;
      if (positions != nullptr) positions[t % sequence * hidden + i] += d;
    }
  }
};

/// i: a token. Its loss in double: their mean is taken in the order of the tokens.
struct CrossEntropyRows {
  const float* logits;
  const std::int32_t* labels;
  float *log_softmax, *softmax;
  double* loss;
  std::int64_t width;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    const float* const row = logits + i * width;
    float most = row[0];
    for (std::int64_t c = 1; c < width; ++c) most = row[c] > most ? row[c] : most;
    double all = 0;
    for (std::int64_t c = 0; c < width; ++c) all += std::exp(row[c] - static_cast<double>(most));
    const double shift = most + std::log(all);
    for (std::int64_t c = 0; c < width; ++c) {
      const double logarithm = row[c] - shift;
      log_softmax[i * width + c] = static_cast<float>(logarithm);
      softmax[i * width + c] = static_cast<float>(std::exp(logarithm));
    }
    loss[i] = row[labels[i]] - shift;
  }
};

/// i: a logit.
struct CrossEntropyBackward {
  const float* kept;
  const std::int32_t* labels;
  float* d;
  std::int64_t tokens, width;
  bool has_softmax;
  Format format;
  TIDEGATE_KERNEL void operator()(std::int64_t i) const {
    const double share = has_softmax ? kept[i] : std::exp(static_cast<double>(kept[i]));
    const double target = labels[i / width] == i % width ? 1 : 0;
    d[i] = rounded(static_cast<float>((share - target) / static_cast<double>(tokens)), format);
  }
};

}  // namespace tidegate::train::kernels
