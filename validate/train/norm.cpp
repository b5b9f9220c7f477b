#include <utility>

#include "validate/train/parts.hpp"

/// Norms of the stream, in front of a sublayer, and of the heads of q and k.
namespace tidegate::train {
namespace {

struct Shape {
  const Site& site;
  std::string name;
  std::size_t first = 0;  // tensor of the operator
  Centring centring() const {
    return site.workload.network.norm == NormKind::layer_norm ? Centring::mean : Centring::none;
  }
  bool has_bias() const {
    return centring() == Centring::mean && site.workload.network.has_norm_bias;
  }
};

void save_input(const Shape& norm, std::span<const float> x, Storages& storages) {
  for (const char* kind : {"_input", "_fp32_input"}) {
    if (norm.site.saves(norm.name + kind)) norm.site.save(storages, norm.name + kind, x);
  }
}

Values apply(const Shape& norm, const Tensors& tensors, std::span<const float> x,
             Storages& storages) {
  save_input(norm, x, storages);
  const std::span<const float> bias =
      norm.has_bias() ? tensors.at(norm.first + 1) : std::span<const float>();
  Normed made = norm.site.backend.norm(x, tensors.at(norm.first), bias, norm.centring(),
                                       norm.site.workload.dtype);
  if (norm.site.saves(norm.name + "_normalized"))
    norm.site.save(storages, norm.name + "_normalized", made.normalized);
  return std::move(made.y);
}

// Rounded input gradient; appends those of weight and bias.
Values apply_backward(const Shape& norm, const Tensors& tensors, std::span<const float> dy,
                      const Storages& storages, Tensors& gradients) {
  const Site& site = norm.site;
  const bool is_fp32 = site.saves(norm.name + "_fp32_input");
  const Values x = site.saved(storages, norm.name + (is_fp32 ? "_fp32_input" : "_input"));
  Values normalized;
  if (site.saves(norm.name + "_normalized"))
    normalized = site.saved(storages, norm.name + "_normalized");
  NormGradients made = site.backend.norm_backward(x, dy, tensors.at(norm.first), normalized,
                                                  norm.centring(), site.workload.dtype);
  gradients.push_back(std::move(made.weight));
  if (norm.has_bias()) gradients.push_back(std::move(made.bias));
  return std::move(made.x);
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
  add_to(flow.stream, dx, site.workload.dtype, site.backend);
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
