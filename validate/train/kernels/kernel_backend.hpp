#pragma once

#include <memory>

#include "validate/train/backend.hpp"
#include "validate/train/kernels/kernel_device.hpp"

namespace tidegate::train {

/// Training by the kernels of this folder and the products of a device. Every primitive brings its
/// operands to the device, works there and brings back what it has made: right, not fast.
///
/// No sum depends on who comes first (kernel.hpp), and the products of a device give the same bits
/// for the same shape and operands: so do all primitives.
class KernelBackend final : public Backend {
 public:
  explicit KernelBackend(std::unique_ptr<KernelDevice> device) : device_(std::move(device)) {}

  RemoteMemory* memory() const override { return device_.get(); }
  std::string place() const override { return "on " + device_->name(); }
  std::string products_text(DType type) const override { return device_->products_text(type); }

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

 private:
  std::unique_ptr<KernelDevice> device_;

  void launch(const kernels::Kernel& kernel, std::size_t count) const;
  void multiply(const cuda::Product& product, std::span<const float> a, std::span<const float> b,
                std::span<float> c) const;
};

}  // namespace tidegate::train
