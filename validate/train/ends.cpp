#include <algorithm>
#include <cmath>

#include "models/base/error.hpp"
#include "validate/train/matrix.hpp"
#include "validate/train/parts.hpp"

namespace tidegate::train {
namespace {

bool has_positions(const Site& site) {
  return site.workload.network.positions == Positions::learned;
}

// Row of the position table that token t reads.
std::size_t position_of(const Site& site, std::size_t t) {
  return t % static_cast<std::size_t>(site.workload.sequence);
}

}  // namespace

void embed(const Site& site, const Tensors& tensors, Flow& flow, Storages& storages) {
  const auto h = static_cast<std::size_t>(site.workload.network.hidden);
  const Values ids(site.tokens.begin(), site.tokens.end());  // exact below 2^24
  site.save(storages, "token_ids", ids);
  Values stream(ids.size() * h);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const auto row = static_cast<std::size_t>(site.tokens[t]) * h;
    for (std::size_t i = 0; i < h; ++i) {
      stream[t * h + i] = tensors.at(0)[row + i];
      if (has_positions(site)) stream[t * h + i] += tensors.at(1)[position_of(site, t) * h + i];
    }
  }
  round_all(stream, site.workload.dtype);
  flow.stream = std::move(stream);
}

Tensors embed_backward(const Site& site, const Tensors& tensors, Flow& flow,
                       const Storages& storages) {
  const auto h = static_cast<std::size_t>(site.workload.network.hidden);
  const Values ids = site.saved(storages, "token_ids");
  Tensors gradients;
  for (const Values& table : tensors) gradients.emplace_back(table.size());
  for (std::size_t t = 0; t < ids.size(); ++t) {
    for (std::size_t i = 0; i < h; ++i) {
      const float d = flow.stream[t * h + i];
      gradients[0][static_cast<std::size_t>(ids[t]) * h + i] += d;
      if (has_positions(site)) gradients[1][position_of(site, t) * h + i] += d;
    }
  }
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
  round_all(dx, site.workload.dtype);
  (n.has_final_norm ? flow.branch : flow.stream) = std::move(dx);
  if (!n.has_final_norm) flow.branch.clear();
  return gradients;
}

// loss = mean over tokens of -log softmax(logits)[label].
void loss(const Site& site, const Tensors&, Flow& flow, Storages& storages) {
  const auto width = static_cast<std::size_t>(site.workload.network.vocabulary);
  const std::size_t rows = flow.branch.size() / width;
  Values logarithms(flow.branch.size()), softmax(flow.branch.size());
  double sum = 0;
  for (std::size_t t = 0; t < rows; ++t) {
    const auto row = std::span(flow.branch).subspan(t * width, width);
    const double most = *std::ranges::max_element(row);
    double all = 0;
    for (const float x : row) all += std::exp(x - most);
    const double shift = most + std::log(all);
    for (std::size_t i = 0; i < width; ++i) {
      logarithms[t * width + i] = static_cast<float>(row[i] - shift);
      softmax[t * width + i] = static_cast<float>(std::exp(row[i] - shift));
    }
    sum += row[static_cast<std::size_t>(site.labels[t])] - shift;
  }
  flow.loss = -sum / static_cast<double>(rows);
  if (site.saves("log_softmax")) site.save(storages, "log_softmax", logarithms);
  if (site.saves("logits")) site.save(storages, "logits", flow.branch);
  if (site.saves("softmax")) site.save(storages, "softmax", softmax);
  flow.branch.clear();
}

Tensors loss_backward(const Site& site, const Tensors&, Flow& flow, const Storages& storages) {
  const auto width = static_cast<std::size_t>(site.workload.network.vocabulary);
  const bool has_softmax = site.saves("softmax");
  Values d = site.saved(storages, has_softmax ? "softmax" : "log_softmax");
  const std::size_t rows = d.size() / width;
  for (std::size_t i = 0; i < d.size(); ++i) {
    const bool is_label = static_cast<std::size_t>(site.labels[i / width]) == i % width;
    const double share = has_softmax ? d[i] : std::exp(static_cast<double>(d[i]));
    d[i] = static_cast<float>((share - (is_label ? 1 : 0)) / static_cast<double>(rows));
  }
  round_all(d, site.workload.dtype);
  flow.branch = std::move(d);
  return {};
}

}  // namespace tidegate::train
