#include "validate/train/parts.hpp"

namespace tidegate::train {
namespace {

Values activated(const Site& site, std::span<const float> x) {
  return site.backend.activated(site.workload.network.activation, x, site.workload.dtype);
}

// Of ReLU the output does as well as the input.
Values through_activation(const Site& site, std::span<const float> dy, std::span<const float> x) {
  return site.backend.through_activation(site.workload.network.activation, dy, x,
                                         site.workload.dtype);
}

}  // namespace

void ffn_up(const Site& site, const Tensors& tensors, Flow& flow, Storages& storages) {
  const Network& n = site.workload.network;
  const bool bias = n.has_ffn_bias;
  const auto project = [&](std::size_t first, std::int64_t width) {
    return linear(site, tensors, first, bias, flow.branch, n.hidden, width);
  };
  site.save(storages, "ffn_input", flow.branch);
  if (!n.has_gated_ffn) {
    flow.up = project(0, n.ffn);
  } else if (n.has_fused_projections) {
    const Values both = project(0, 2 * n.ffn);
    flow.gate = columns(both, 2 * n.ffn, 0, n.ffn);
    flow.up = columns(both, 2 * n.ffn, n.ffn, n.ffn);
  } else {
    flow.gate = project(0, n.ffn);
    flow.up = project(bias ? 2 : 1, n.ffn);
  }
  flow.branch.clear();
}

Tensors ffn_up_backward(const Site& site, const Tensors& tensors, Flow& flow,
                        const Storages& storages) {
  const Network& n = site.workload.network;
  const bool bias = n.has_ffn_bias;
  const Values x = site.saved(storages, "ffn_input");
  Values dx;
  Tensors gradients;
  const auto back = [&](std::size_t first, std::span<const float> dy, std::int64_t width) {
    linear_backward(site, tensors, first, bias, dy, x, n.hidden, width, dx, gradients);
  };
  if (!n.has_gated_ffn) {
    back(0, flow.up, n.ffn);
  } else if (n.has_fused_projections) {
    back(0, side_by_side(flow.gate, n.ffn, flow.up, n.ffn), 2 * n.ffn);
  } else {
    back(0, flow.gate, n.ffn);
    back(bias ? 2 : 1, flow.up, n.ffn);
  }
  site.backend.round(dx, site.workload.dtype);
  flow.branch = std::move(dx);
  flow.gate.clear(), flow.up.clear();
  return gradients;
}

void activate(const Site& site, const Tensors&, Flow& flow, Storages& storages) {
  if (!site.workload.network.has_gated_ffn) {
    flow.branch = activated(site, flow.up);
    if (site.saves("activation_input")) site.save(storages, "activation_input", flow.up);
    if (site.saves("activation_output")) site.save(storages, "activation_output", flow.branch);
  } else {
    const Values gate = activated(site, flow.gate);
    flow.branch = site.backend.product(gate, flow.up, site.workload.dtype);
    if (site.saves("gate")) site.save(storages, "gate", flow.gate);
    site.save(storages, "up", flow.up);
    site.save(storages, "gate_activation", gate);
  }
  flow.gate.clear(), flow.up.clear();
}

Tensors activate_backward(const Site& site, const Tensors&, Flow& flow, const Storages& storages) {
  const DType type = site.workload.dtype;
  if (!site.workload.network.has_gated_ffn) {
    const char* kept = site.saves("activation_input") ? "activation_input" : "activation_output";
    flow.up = through_activation(site, flow.branch, site.saved(storages, kept));
  } else {
    const Values activation = site.saved(storages, "gate_activation");
    flow.up = site.backend.product(flow.branch, activation, type);
    const Values d = site.backend.product(flow.branch, site.saved(storages, "up"), type);
    flow.gate =
        through_activation(site, d, site.saves("gate") ? site.saved(storages, "gate") : activation);
  }
  flow.branch.clear();
  return {};
}

void ffn_down(const Site& site, const Tensors& tensors, Flow& flow, Storages& storages) {
  const Network& n = site.workload.network;
  site.save(storages, "down_input", flow.branch);
  flow.branch = linear(site, tensors, 0, n.has_ffn_bias, flow.branch, n.ffn, n.hidden);
}

Tensors ffn_down_backward(const Site& site, const Tensors& tensors, Flow& flow,
                          const Storages& storages) {
  const Network& n = site.workload.network;
  Values dx;
  Tensors gradients;
  linear_backward(site, tensors, 0, n.has_ffn_bias, flow.branch, site.saved(storages, "down_input"),
                  n.ffn, n.hidden, dx, gradients);
  site.backend.round(dx, site.workload.dtype);
  flow.branch = std::move(dx);
  return gradients;
}

}  // namespace tidegate::train
