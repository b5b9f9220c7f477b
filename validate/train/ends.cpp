#include <utility>
#include <vector>

#include "validate/train/parts.hpp"

namespace tidegate::train {
namespace {

bool has_positions(const Site& site) {
  return site.workload.network.positions == Positions::learned;
}

EmbeddingShape shape_of(const Site& site) {
  return {.hidden = site.workload.network.hidden, .sequence = site.workload.sequence};
}

}  // namespace

void embed(const Site& site, const Tensors& tensors, Flow& flow, Storages& storages) {
  const Values ids(site.tokens.begin(), site.tokens.end());  // exact below 2^24
  site.save(storages, "token_ids", ids);
  const std::span<const float> positions =
      has_positions(site) ? tensors.at(1) : std::span<const float>();
  flow.stream = site.backend.embed(site.tokens, tensors.at(0), positions, shape_of(site),
                                   site.workload.dtype);
}

Tensors embed_backward(const Site& site, const Tensors& tensors, Flow& flow,
                       const Storages& storages) {
  std::vector<std::int32_t> ids;
  for (const float id : site.saved(storages, "token_ids"))
    ids.push_back(static_cast<std::int32_t>(id));
  Tensors gradients;
  for (const Values& table : tensors) gradients.emplace_back(table.size());
  const std::span<float> positions = has_positions(site) ? gradients.at(1) : std::span<float>();
  site.backend.embed_backward(ids, flow.stream, shape_of(site), gradients.at(0), positions);
  flow.stream.clear();
  return gradients;
}

void project(const Site& site, const Tensors& tensors, Flow& flow, Storages& storages) {
  const Network& n = site.workload.network;
  if (!n.has_final_norm) flow.branch = flow.stream;
  site.save(storages, "projection_input", flow.branch);
  flow.branch = linear(site, tensors, 0, false, flow.branch, n.hidden, n.vocabulary);
  flow.stream.clear();
}

Tensors project_backward(const Site& site, const Tensors& tensors, Flow& flow,
                         const Storages& storages) {
  const Network& n = site.workload.network;
  Values dx;
  Tensors gradients;
  linear_backward(site, tensors, 0, false, flow.branch, site.saved(storages, "projection_input"),
                  n.hidden, n.vocabulary, dx, gradients);
  site.backend.round(dx, site.workload.dtype);
  (n.has_final_norm ? flow.branch : flow.stream) = std::move(dx);
  if (!n.has_final_norm) flow.branch.clear();
  return gradients;
}

void loss(const Site& site, const Tensors&, Flow& flow, Storages& storages) {
  const CrossEntropy made = site.backend.cross_entropy(flow.branch, site.labels);
  flow.loss = made.loss;
  if (site.saves("log_softmax")) site.save(storages, "log_softmax", made.log_softmax);
  if (site.saves("logits")) site.save(storages, "logits", flow.branch);
  if (site.saves("softmax")) site.save(storages, "softmax", made.softmax);
  flow.branch.clear();
}

Tensors loss_backward(const Site& site, const Tensors&, Flow& flow, const Storages& storages) {
  const bool has_softmax = site.saves("softmax");
  const KeptLogits keeps = has_softmax ? KeptLogits::softmax : KeptLogits::log_softmax;
  const Values kept = site.saved(storages, has_softmax ? "softmax" : "log_softmax");
  flow.branch = site.backend.cross_entropy_backward(kept, keeps, site.labels, site.workload.dtype);
  return {};
}

}  // namespace tidegate::train
