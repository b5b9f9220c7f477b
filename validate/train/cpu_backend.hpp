#pragma once

#include "validate/train/backend.hpp"

namespace tidegate::train {

/// Products by matrix.hpp, all else plain loops in fp32 and double: cpu_norm.cpp,
/// cpu_attention.cpp, cpu_elements.cpp, cpu_ends.cpp.
class CpuBackend final : public Backend {
 public:
  std::string place() const override { return "on cores"; }
  std::string products_text(DType type) const override;

  Values times_transposed(std::span<const float> x, std::span<const float> w,
                          const LinearShape& shape, DType type) const override;
  void add_input_gradient(std::span<const float> dy, std::span<const float> w,
                          const LinearShape& shape, DType type, std::span<float> dx) const override;
  Values weight_gradient(std::span<const float> dy, std::span<const float> x,
                         const LinearShape& shape, DType type) const override;
  Values column_sums(std::span<const float> a, std::int64_t width) const override;
  void add_to_rows(std::span<float> y, std::span<const float> bias, DType type) const override;
  void round(std::span<float> values, DType type) const override;
  void add(std::span<float> to, std::span<const float> from, DType type) const override;
  Values product(std::span<const float> a, std::span<const float> b, DType type) const override;
  Normed norm(std::span<const float> x, std::span<const float> weight, std::span<const float> bias,
              Centring centring, DType type) const override;
  NormGradients norm_backward(std::span<const float> x, std::span<const float> dy,
                              std::span<const float> weight, std::span<const float> normalized,
                              Centring centring, DType type) const override;
  Attended attention(const Projected& in, const AttentionShape& shape, KeptScores keeps,
                     DType type) const override;
  ProjectedGradients attention_backward(const Projected& in, std::span<const float> dout,
                                        std::span<const float> kept, const AttentionShape& shape,
                                        KeptScores keeps, DType type) const override;
  void turn(std::span<float> values, const RotaryShape& shape, double sign,
            DType type) const override;
  Values sum_groups(std::span<const float> all, std::int64_t group, std::int64_t head_dim,
                    DType type) const override;
  Values activated(Activation kind, std::span<const float> x, DType type) const override;
  Values through_activation(Activation kind, std::span<const float> dy, std::span<const float> x,
                            DType type) const override;
  Values embed(std::span<const std::int32_t> ids, std::span<const float> table,
               std::span<const float> positions, const EmbeddingShape& shape,
               DType type) const override;
  void embed_backward(std::span<const std::int32_t> ids, std::span<const float> dy,
                      const EmbeddingShape& shape, std::span<float> table,
                      std::span<float> positions) const override;
  CrossEntropy cross_entropy(std::span<const float> logits,
                             std::span<const std::int32_t> labels) const override;
  Values cross_entropy_backward(std::span<const float> kept, KeptLogits keeps,
                                std::span<const std::int32_t> labels, DType type) const override;
  void adam(std::span<float> parameters, std::span<float> first, std::span<float> second,
            std::span<const float> gradient, const cpu::AdamOptions& options) const override;
  void sgd(std::span<float> parameters, std::span<const float> gradient, float rate,
           float scale) const override;
};

}  // namespace tidegate::train
