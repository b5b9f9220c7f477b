#include <vector>

#include "validate/train/parts.hpp"

namespace tidegate::train {
namespace {

std::int64_t query_width(const Network& n) { return n.heads * n.head_dim; }
std::int64_t key_width(const Network& n) { return n.kv_heads * n.head_dim; }

bool is_repeated(const Site& site) {
  return !site.workload.kernels.flash_attention &&
         site.workload.network.kv_heads < site.workload.network.heads;
}

// One of the projections that read the normed stream: its rows of the weights are those of q, k and
// v one after another where the framework has them in one tensor.
struct Projection {
  std::vector<Values Flow::*> to;
  std::vector<std::int64_t> widths;
  std::int64_t width() const {
    std::int64_t all = 0;
    for (const std::int64_t w : widths) all += w;
    return all;
  }
};

std::vector<Projection> projections_of(const Network& n) {
  const std::int64_t q = query_width(n), kv = key_width(n);
  if (n.has_fused_qkv) return {{{&Flow::q, &Flow::k, &Flow::v}, {q, kv, kv}}};
  if (n.has_fused_projections) return {{{&Flow::q}, {q}}, {{&Flow::k, &Flow::v}, {kv, kv}}};
  return {{{&Flow::q}, {q}}, {{&Flow::k}, {kv}}, {{&Flow::v}, {kv}}};
}

// Numbers of each key head, once for every query head of its group.
Values copied_to_heads(const Values& kv, const Network& n) {
  const std::int64_t group = n.heads / n.kv_heads, d = n.head_dim;
  Values all;
  for (auto head = kv.begin(); head != kv.end(); head += d) {
    for (std::int64_t i = 0; i < group; ++i) all.insert(all.end(), head, head + d);
  }
  return all;
}

Values summed_over_groups(const Site& site, const Values& all) {
  const Network& n = site.workload.network;
  return site.backend.sum_groups(all, n.heads / n.kv_heads, n.head_dim, site.workload.dtype);
}

void turn(const Site& site, Values& values, double sign) {
  const Network& n = site.workload.network;
  const auto heads = static_cast<std::int64_t>(values.size()) / n.head_dim / site.rows();
  const auto turned =
      static_cast<std::int64_t>(n.rotary_fraction * static_cast<double>(n.head_dim));
  site.backend.turn(values,
                    {.sequence = site.workload.sequence,
                     .heads = heads,
                     .head_dim = n.head_dim,
                     .pairs = turned / 2},
                    sign, site.workload.dtype);
}

}  // namespace

void keep_projections(const Site& site, Flow& flow, Storages& storages) {
  if (!site.saves("q")) return;  // a later operator does
  if (is_repeated(site)) {
    flow.k = copied_to_heads(flow.k, site.workload.network);
    flow.v = copied_to_heads(flow.v, site.workload.network);
  }
  site.save(storages, "q", flow.q);
  site.save(storages, "k", flow.k);
  site.save(storages, "v", flow.v);
}

void merge_copies(const Site& site, Flow& flow) {
  if (!site.saves("q") || !is_repeated(site)) return;
  flow.k = summed_over_groups(site, flow.k);
  flow.v = summed_over_groups(site, flow.v);
}

void qkv(const Site& site, const Tensors& tensors, Flow& flow, Storages& storages) {
  const Network& n = site.workload.network;
  site.save(storages, "qkv_input", flow.branch);
  std::size_t first = 0;
  for (const Projection& p : projections_of(n)) {
    const Values y =
        linear(site, tensors, first, n.has_attention_bias, flow.branch, n.hidden, p.width());
    std::int64_t from = 0;
    for (std::size_t i = 0; i < p.to.size(); ++i) {
      flow.*p.to[i] = columns(y, p.width(), from, p.widths[i]);
      from += p.widths[i];
    }
    first += n.has_attention_bias ? 2 : 1;
  }
  flow.branch.clear();
  keep_projections(site, flow, storages);
}

Tensors qkv_backward(const Site& site, const Tensors& tensors, Flow& flow,
                     const Storages& storages) {
  merge_copies(site, flow);
  const Network& n = site.workload.network;
  const Values x = site.saved(storages, "qkv_input");
  Values dx;
  Tensors gradients;
  std::size_t first = 0;
  for (const Projection& p : projections_of(n)) {
    Values dy = flow.*p.to[0];
    std::int64_t width = p.widths[0];
    for (std::size_t i = 1; i < p.to.size(); ++i) {
      dy = side_by_side(dy, width, flow.*p.to[i], p.widths[i]);
      width += p.widths[i];
    }
    linear_backward(site, tensors, first, n.has_attention_bias, dy, x, n.hidden, width, dx,
                    gradients);
    first += n.has_attention_bias ? 2 : 1;
  }
  site.backend.round(dx, site.workload.dtype);
  flow.branch = std::move(dx);
  flow.q.clear(), flow.k.clear(), flow.v.clear();
  return gradients;
}

void rotary(const Site& site, const Tensors&, Flow& flow, Storages& storages) {
  turn(site, flow.q, 1);
  turn(site, flow.k, 1);
  keep_projections(site, flow, storages);
}

Tensors rotary_backward(const Site& site, const Tensors&, Flow& flow, const Storages&) {
  merge_copies(site, flow);
  turn(site, flow.q, -1);
  turn(site, flow.k, -1);
  return {};
}

void output(const Site& site, const Tensors& tensors, Flow& flow, Storages& storages) {
  const Network& n = site.workload.network;
  site.save(storages, "projection_input", flow.branch);
  flow.branch = linear(site, tensors, 0, n.has_output_bias, flow.branch, query_width(n), n.hidden);
}

Tensors output_backward(const Site& site, const Tensors& tensors, Flow& flow,
                        const Storages& storages) {
  const Network& n = site.workload.network;
  Values dx;
  Tensors gradients;
  linear_backward(site, tensors, 0, n.has_output_bias, flow.branch,
                  site.saved(storages, "projection_input"), query_width(n), n.hidden, dx,
                  gradients);
  site.backend.round(dx, site.workload.dtype);
  flow.branch = std::move(dx);
  return gradients;
}

}  // namespace tidegate::train
