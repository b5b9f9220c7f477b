#include <cmath>

#include "models/base/error.hpp"
#include "validate/train/parts.hpp"

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

Row statistics(std::span<const float> x, bool is_centred) {
  const auto n = static_cast<double>(x.size());
  double sum = 0, squares = 0;
  for (const float v : x) sum += v;
  const double mean = is_centred ? sum / n : 0;
  for (const float v : x) squares += (v - mean) * (v - mean);
  return {mean, 1 / std::sqrt(squares / n + epsilon)};
}

struct Shape {
  const Site& site;
  std::string name;
  std::size_t first = 0;  // tensor of the operator
  bool is_centred() const { return site.workload.network.norm == NormKind::layer_norm; }
  bool has_bias() const { return is_centred() && site.workload.network.has_norm_bias; }
};

void save_input(const Shape& norm, std::span<const float> x, Storages& storages) {
  for (const char* kind : {"_input", "_fp32_input"}) {
    if (norm.site.saves(norm.name + kind)) norm.site.save(storages, norm.name + kind, x);
  }
}

Values apply(const Shape& norm, const Tensors& tensors, std::span<const float> x,
             Storages& storages) {
  save_input(norm, x, storages);
  const Values& weight = tensors.at(norm.first);
  const std::size_t width = weight.size();
  Values y(x.size()), normalized(x.size());
  for (std::size_t at = 0; at < x.size(); at += width) {
    const Row row = statistics(x.subspan(at, width), norm.is_centred());
    for (std::size_t i = 0; i < width; ++i) {
      normalized[at + i] = static_cast<float>((x[at + i] - row.mean) * row.inverse);
      y[at + i] = normalized[at + i] * weight[i];
      if (norm.has_bias()) y[at + i] += tensors.at(norm.first + 1)[i];
    }
  }
  if (norm.site.saves(norm.name + "_normalized"))
    norm.site.save(storages, norm.name + "_normalized", normalized);
  round_all(y, norm.site.workload.dtype);
  return y;
}

void row_backward(std::span<const float> x, std::span<const float> dy, const Values& weight,
                  bool is_centred, std::span<float> dx, std::span<float> normalized) {
  const Row row = statistics(x, is_centred);
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
    const double centred = is_centred ? g - mean_g : g;
    dx[i] = static_cast<float>((centred - normalized[i] * mean_gz) * row.inverse);
  }
}

// Rounded input gradient; appends those of weight and bias.
Values apply_backward(const Shape& norm, const Tensors& tensors, std::span<const float> dy,
                      const Storages& storages, Tensors& gradients) {
  const Site& site = norm.site;
  const bool is_fp32 = site.saves(norm.name + "_fp32_input");
  const Values x = site.saved(storages, norm.name + (is_fp32 ? "_fp32_input" : "_input"));
  const Values& weight = tensors.at(norm.first);
  const std::size_t width = weight.size();
  Values dx(x.size()), normalized(x.size()), dw(width), db(width);
  for (std::size_t at = 0; at < x.size(); at += width) {
    row_backward(std::span(x).subspan(at, width), dy.subspan(at, width), weight, norm.is_centred(),
                 std::span(dx).subspan(at, width), std::span(normalized).subspan(at, width));
  }
  if (site.saves(norm.name + "_normalized"))
    normalized = site.saved(storages, norm.name + "_normalized");
  for (std::size_t i = 0; i < x.size(); ++i) {
    dw[i % width] += dy[i] * normalized[i];
    db[i % width] += dy[i];
  }
  gradients.push_back(std::move(dw));
  if (norm.has_bias()) gradients.push_back(std::move(db));
  round_all(dx, site.workload.dtype);
  return dx;
}

Shape only_norm(const Site& site) {
  const std::string& weight = site.op.parameters.at(0).name;
  return {site, weight.substr(0, weight.rfind('.')), 0};
}

std::pair<Shape, Shape> head_norms(const Site& site) {
  Shape q{site, "q_norm", 0}, k{site, "k_norm", 1};
  if (q.has_bias()) k.first = 2;
  return {q, k};
}

}  // namespace

void norm_stream(const Site& site, const Tensors& tensors, Flow& flow, Storages& storages) {
  flow.stream = apply(only_norm(site), tensors, flow.stream, storages);
}

Tensors norm_stream_backward(const Site& site, const Tensors& tensors, Flow& flow,
                             const Storages& storages) {
  Tensors gradients;
  flow.stream = apply_backward(only_norm(site), tensors, flow.stream, storages, gradients);
  return gradients;
}

void norm_branch(const Site& site, const Tensors& tensors, Flow& flow, Storages& storages) {
  flow.branch = apply(only_norm(site), tensors, flow.stream, storages);
}

Tensors norm_branch_backward(const Site& site, const Tensors& tensors, Flow& flow,
                             const Storages& storages) {
  Tensors gradients;
  const Values dx = apply_backward(only_norm(site), tensors, flow.branch, storages, gradients);
  add_to(flow.stream, dx, site.workload.dtype);
  flow.branch.clear();
  return gradients;
}

void norm_heads(const Site& site, const Tensors& tensors, Flow& flow, Storages& storages) {
  const auto [q, k] = head_norms(site);
  flow.q = apply(q, tensors, flow.q, storages);
  flow.k = apply(k, tensors, flow.k, storages);
  keep_projections(site, flow, storages);
}

Tensors norm_heads_backward(const Site& site, const Tensors& tensors, Flow& flow,
                            const Storages& storages) {
  merge_copies(site, flow);
  Tensors gradients;
  const auto [q, k] = head_norms(site);
  flow.q = apply_backward(q, tensors, flow.q, storages, gradients);
  flow.k = apply_backward(k, tensors, flow.k, storages, gradients);
  return gradients;
}

}  // namespace tidegate::train
