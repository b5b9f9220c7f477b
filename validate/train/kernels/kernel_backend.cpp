#include "validate/train/kernels/kernel_backend.hpp"

#include <cmath>

#include "calib/kernels/slices.hpp"
#include "models/base/error.hpp"

namespace tidegate::train {
namespace {

using Floats = DeviceArray<float>;
using Numbers = DeviceArray<std::int32_t>;

kernels::Format format_of(DType type) {
  ensure(type != DType::fp8, "fp8 has no arithmetic");
  if (type == DType::fp32) return kernels::Format::fp32;
  return type == DType::bf16 ? kernels::Format::bf16 : kernels::Format::fp16;
}

kernels::Curve curve_of(Activation kind) {
  switch (kind) {
    case Activation::gelu:
      return kernels::Curve::gelu;
    case Activation::silu:
      return kernels::Curve::silu;
    case Activation::relu:
      return kernels::Curve::relu;
  }
  return kernels::Curve::relu;
}

kernels::Geometry geometry_of(const AttentionShape& s) {
  return {s.batch,
          s.length,
          s.heads,
          s.kv_heads,
          s.head_dim,
          s.window,
          1 / std::sqrt(static_cast<double>(s.head_dim))};
}

std::int64_t count_of(std::span<const float> values) {
  return static_cast<std::int64_t>(values.size());
}

}  // namespace

void KernelBackend::launch(const kernels::Kernel& kernel, std::size_t count) const {
  if (count > 0) device_->launch(kernel, static_cast<std::int64_t>(count));
}

// Operands of 16 bits are narrowed on the device.
void KernelBackend::multiply(const cuda::Product& product, std::span<const float> a,
                             std::span<const float> b, std::span<float> c) const {
  const Floats wide_a(*device_, a), wide_b(*device_, b), sums(*device_, c);
  if (product.operands == DType::fp32) {
    device_->multiply(product, wide_a.at(), wide_b.at(), sums.at());
    return sums.get(c);
  }
  const kernels::Format format = format_of(product.operands);
  const DeviceArray<std::uint16_t> narrow_a(*device_, a.size()), narrow_b(*device_, b.size());
  launch(kernels::Narrow{wide_a.at(), narrow_a.at(), format}, a.size());
  launch(kernels::Narrow{wide_b.at(), narrow_b.at(), format}, b.size());
  device_->multiply(product, narrow_a.at(), narrow_b.at(), sums.at());
  sums.get(c);
}

Values KernelBackend::times_transposed(std::span<const float> x, std::span<const float> w,
                                       const LinearShape& s, DType type) const {
  Values y(static_cast<std::size_t>(s.rows * s.out));
  multiply({.m = s.rows, .n = s.out, .k = s.in, .b_is_transposed = true, .operands = type}, x, w,
           y);
  return y;
}

void KernelBackend::add_input_gradient(std::span<const float> dy, std::span<const float> w,
                                       const LinearShape& s, DType type,
                                       std::span<float> dx) const {
  multiply({.m = s.rows, .n = s.in, .k = s.out, .adds = true, .operands = type}, dy, w, dx);
}

Values KernelBackend::weight_gradient(std::span<const float> dy, std::span<const float> x,
                                      const LinearShape& s, DType type) const {
  Values dw(static_cast<std::size_t>(s.out * s.in));
  multiply({.m = s.out, .n = s.in, .k = s.rows, .a_is_transposed = true, .operands = type}, dy, x,
           dw);
  return dw;
}

Values KernelBackend::column_sums(std::span<const float> a, std::int64_t width) const {
  const auto columns = static_cast<std::size_t>(width);
  const Floats all(*device_, a), sums(*device_, columns);
  launch(kernels::ColumnSums{all.at(), sums.at(), count_of(a) / width, width}, columns);
  return sums.get();
}

void KernelBackend::add_to_rows(std::span<float> y, std::span<const float> bias, DType type) const {
  const Floats rows(*device_, y), row(*device_, bias);
  launch(kernels::AddToRows{rows.at(), row.at(), count_of(bias), format_of(type)}, y.size());
  rows.get(y);
}

void KernelBackend::round(std::span<float> values, DType type) const {
  const Floats all(*device_, values);
  launch(kernels::Round{all.at(), format_of(type)}, values.size());
  all.get(values);
}

void KernelBackend::add(std::span<float> to, std::span<const float> from, DType type) const {
  const Floats sum(*device_, to), more(*device_, from);
  launch(kernels::Add{sum.at(), more.at(), format_of(type)}, to.size());
  sum.get(to);
}

Values KernelBackend::product(std::span<const float> a, std::span<const float> b,
                              DType type) const {
  const Floats left(*device_, a), right(*device_, b), y(*device_, a.size());
  launch(kernels::Multiply{left.at(), right.at(), y.at(), format_of(type)}, a.size());
  return y.get();
}

Normed KernelBackend::norm(std::span<const float> x, std::span<const float> weight,
                           std::span<const float> bias, Centring centring, DType type) const {
  const Floats in(*device_, x), w(*device_, weight), b(*device_, bias), y(*device_, x.size()),
      normalized(*device_, x.size());
  launch(kernels::Norm{in.at(), w.at(), b.at(), y.at(), normalized.at(), count_of(weight),
                       centring == Centring::mean, format_of(type)},
         x.size() / weight.size());
  return {.y = y.get(), .normalized = normalized.get()};
}

NormGradients KernelBackend::norm_backward(std::span<const float> x, std::span<const float> dy,
                                           std::span<const float> weight,
                                           std::span<const float> normalized, Centring centring,
                                           DType type) const {
  const std::size_t width = weight.size(), rows = x.size() / width;
  const Floats in(*device_, x), back(*device_, dy), w(*device_, weight), kept(*device_, normalized),
      again(*device_, x.size()), dx(*device_, x.size()), dw(*device_, width), db(*device_, width);
  launch(kernels::NormBackward{in.at(), back.at(), w.at(), dx.at(), again.at(), count_of(weight),
                               centring == Centring::mean, format_of(type)},
         rows);
  launch(kernels::NormParameters{back.at(), normalized.empty() ? again.at() : kept.at(), dw.at(),
                                 db.at(), static_cast<std::int64_t>(rows), count_of(weight)},
         width);
  return {.x = dx.get(), .weight = dw.get(), .bias = db.get()};
}

Attended KernelBackend::attention(const Projected& in, const AttentionShape& s, KeptScores keeps,
                                  DType type) const {
  const bool is_softmax = keeps == KeptScores::softmax;
  const auto rows = static_cast<std::size_t>(s.batch * s.heads * s.length);
  const Floats q(*device_, in.q), k(*device_, in.k), v(*device_, in.v), out(*device_, in.q.size()),
      kept(*device_, is_softmax ? rows * static_cast<std::size_t>(s.length) : rows);
  launch(
      kernels::AttentionForward{q.at(), k.at(), v.at(), out.at(), is_softmax ? nullptr : kept.at(),
                                is_softmax ? kept.at() : nullptr, geometry_of(s), format_of(type)},
      rows);
  return {.out = out.get(), .kept = kept.get()};
}

ProjectedGradients KernelBackend::attention_backward(const Projected& in,
                                                     std::span<const float> dout,
                                                     std::span<const float> kept,
                                                     const AttentionShape& s, KeptScores keeps,
                                                     DType type) const {
  const bool is_softmax = keeps == KeptScores::softmax;
  const auto rows = static_cast<std::size_t>(s.batch * s.heads * s.length);
  const Floats q(*device_, in.q), k(*device_, in.k), v(*device_, in.v), back(*device_, dout),
      scores(*device_, kept), dq(*device_, in.q.size()), dk(*device_, in.k.size()),
      dv(*device_, in.v.size());
  const DeviceArray<double> inner(*device_, rows);
  const kernels::AttentionShares shares{q.at(),
                                        k.at(),
                                        v.at(),
                                        back.at(),
                                        is_softmax ? nullptr : scores.at(),
                                        is_softmax ? scores.at() : nullptr,
                                        geometry_of(s)};
  launch(kernels::AttentionQueries{shares, dq.at(), inner.at(), format_of(type)}, rows);
  launch(kernels::AttentionKeys{shares, inner.at(), dk.at(), dv.at(), format_of(type)},
         static_cast<std::size_t>(s.batch * s.kv_heads * s.length));
  return {.q = dq.get(), .k = dk.get(), .v = dv.get()};
}

void KernelBackend::turn(std::span<float> values, const RotaryShape& s, double sign,
                         DType type) const {
  const Floats all(*device_, values);
  launch(kernels::Turn{all.at(), s.sequence, s.heads, s.head_dim, s.pairs, sign, format_of(type)},
         values.size() / static_cast<std::size_t>(s.head_dim));
  all.get(values);
}

Values KernelBackend::sum_groups(std::span<const float> all, std::int64_t group,
                                 std::int64_t head_dim, DType type) const {
  const std::size_t count = all.size() / static_cast<std::size_t>(group);
  const Floats in(*device_, all), sums(*device_, count);
  launch(kernels::SumGroups{in.at(), sums.at(), group, head_dim, format_of(type)}, count);
  return sums.get();
}

Values KernelBackend::activated(Activation kind, std::span<const float> x, DType type) const {
  const Floats in(*device_, x), y(*device_, x.size());
  launch(kernels::Activate{in.at(), y.at(), curve_of(kind), format_of(type)}, x.size());
  return y.get();
}

Values KernelBackend::through_activation(Activation kind, std::span<const float> dy,
                                         std::span<const float> x, DType type) const {
  const Floats back(*device_, dy), in(*device_, x), dx(*device_, x.size());
  launch(kernels::ActivateBackward{back.at(), in.at(), dx.at(), curve_of(kind), format_of(type)},
         x.size());
  return dx.get();
}

Values KernelBackend::embed(std::span<const std::int32_t> ids, std::span<const float> table,
                            std::span<const float> positions, const EmbeddingShape& s,
                            DType type) const {
  const std::size_t count = ids.size() * static_cast<std::size_t>(s.hidden);
  const Numbers tokens(*device_, ids);
  const Floats rows(*device_, table), places(*device_, positions), stream(*device_, count);
  launch(kernels::Embed{tokens.at(), rows.at(), places.at(), stream.at(), s.hidden, s.sequence,
                        format_of(type)},
         count);
  return stream.get();
}

void KernelBackend::embed_backward(std::span<const std::int32_t> ids, std::span<const float> dy,
                                   const EmbeddingShape& s, std::span<float> table,
                                   std::span<float> positions) const {
  const Numbers tokens(*device_, ids);
  const Floats back(*device_, dy), rows(*device_, table), places(*device_, positions);
  launch(kernels::EmbedBackward{tokens.at(), back.at(), rows.at(), places.at(),
                                static_cast<std::int64_t>(ids.size()), s.hidden, s.sequence},
         static_cast<std::size_t>(s.hidden));
  rows.get(table);
  places.get(positions);
}

CrossEntropy KernelBackend::cross_entropy(std::span<const float> logits,
                                          std::span<const std::int32_t> labels) const {
  const Floats in(*device_, logits), logarithms(*device_, logits.size()),
      softmax(*device_, logits.size());
  const Numbers targets(*device_, labels);
  const DeviceArray<double> losses(*device_, labels.size());
  const auto tokens = static_cast<std::int64_t>(labels.size());
  launch(kernels::CrossEntropyRows{in.at(), targets.at(), logarithms.at(), softmax.at(),
                                   losses.at(), count_of(logits) / tokens},
         labels.size());
  double sum = 0;
  for (const double one : losses.get()) sum += one;
  return {.loss = -sum / static_cast<double>(tokens),
          .log_softmax = logarithms.get(),
          .softmax = softmax.get()};
}

Values KernelBackend::cross_entropy_backward(std::span<const float> kept, KeptLogits keeps,
                                             std::span<const std::int32_t> labels,
                                             DType type) const {
  const Floats in(*device_, kept), d(*device_, kept.size());
  const Numbers targets(*device_, labels);
  const auto tokens = static_cast<std::int64_t>(labels.size());
  launch(
      kernels::CrossEntropyBackward{in.at(), targets.at(), d.at(), tokens, count_of(kept) / tokens,
                                    keeps == KeptLogits::softmax, format_of(type)},
      kept.size());
  return d.get();
}

void KernelBackend::adam(std::span<float> parameters, std::span<float> first,
                         std::span<float> second, std::span<const float> gradient,
                         const cpu::AdamOptions& options) const {
  const Floats p(*device_, parameters), m(*device_, first), v(*device_, second),
      g(*device_, gradient);
  const cpu::AdamStep s = cpu::step_of(options);
  launch(kernels::Adam{p.at(), m.at(), v.at(), g.at(), s.scale, s.beta1, s.rest1, s.beta2, s.rest2,
                       s.keep, s.rate, s.root, s.epsilon},
         gradient.size());
  p.get(parameters);
  m.get(first);
  v.get(second);
}

void KernelBackend::sgd(std::span<float> parameters, std::span<const float> gradient, float rate,
                        float scale) const {
  const Floats p(*device_, parameters), g(*device_, gradient);
  launch(kernels::Sgd{p.at(), g.at(), rate, scale}, gradient.size());
  p.get(parameters);
}

}  // namespace tidegate::train
