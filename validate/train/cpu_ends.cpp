#include <algorithm>
#include <cmath>

#include "validate/train/cpu_backend.hpp"

/// Embedding and loss.
namespace tidegate::train {

Values CpuBackend::embed(std::span<const std::int32_t> ids, std::span<const float> table,
                         std::span<const float> positions, const EmbeddingShape& shape,
                         DType type) const {
  const auto h = static_cast<std::size_t>(shape.hidden);
  const auto sequence = static_cast<std::size_t>(shape.sequence);
  Values stream(ids.size() * h);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const auto row = static_cast<std::size_t>(ids[t]) * h;
    for (std::size_t i = 0; i < h; ++i) {
      stream[t * h + i] = table[row + i];
      if (!positions.empty()) stream[t * h + i] += positions[t % sequence * h + i];
    }
  }
  round_all(stream, type);
  return stream;
}

void CpuBackend::embed_backward(std::span<const std::int32_t> ids, std::span<const float> dy,
                                const EmbeddingShape& shape, std::span<float> table,
                                std::span<float> positions) const {
  const auto h = static_cast<std::size_t>(shape.hidden);
  const auto sequence = static_cast<std::size_t>(shape.sequence);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    for (std::size_t i = 0; i < h; ++i) {
      table[static_cast<std::size_t>(ids[t]) * h + i] += dy[t * h + i];
      if (!positions.empty()) positions[t % sequence * h + i] += dy[t * h + i];
    }
  }
}

CrossEntropy CpuBackend::cross_entropy(std::span<const float> logits,
                                       std::span<const std::int32_t> labels) const {
  const std::size_t width = logits.size() / labels.size();
  CrossEntropy made{
      .loss = 0, .log_softmax = Values(logits.size()), .softmax = Values(logits.size())};
  double sum = 0;
  for (std::size_t t = 0; t < labels.size(); ++t) {
    const auto row = logits.subspan(t * width, width);
    const double most = *std::ranges::max_element(row);
    double all = 0;
    for (const float x : row) all += std::exp(x - most);
    const double shift = most + std::log(all);
    for (std::size_t i = 0; i < width; ++i) {
      made.log_softmax[t * width + i] = static_cast<float>(row[i] - shift);
      made.softmax[t * width + i] = static_cast<float>(std::exp(row[i] - shift));
    }
    sum += row[static_cast<std::size_t>(labels[t])] - shift;
  }
  made.loss = -sum / static_cast<double>(labels.size());
  return made;
}

Values CpuBackend::cross_entropy_backward(std::span<const float> kept, KeptLogits keeps,
                                          std::span<const std::int32_t> labels, DType type) const {
  const std::size_t width = kept.size() / labels.size();
  Values d(kept.size());
  for (std::size_t i = 0; i < d.size(); ++i) {
    const bool is_label = static_cast<std::size_t>(labels[i / width]) == i % width;
    const double share =
        keeps == KeptLogits::softmax ? kept[i] : std::exp(static_cast<double>(kept[i]));
    d[i] = static_cast<float>((share - (is_label ? 1 : 0)) / static_cast<double>(labels.size()));
  }
  round_all(d, type);
  return d;
}

}  // namespace tidegate::train
