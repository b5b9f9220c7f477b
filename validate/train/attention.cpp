#include <utility>

#include "validate/train/parts.hpp"

/// The core of attention: reads q, k and v from their storages, and keeps the logarithms of sums
/// (flash) or the softmax.
namespace tidegate::train {
namespace {

AttentionShape shape_of(const Site& site) {
  const Network& n = site.workload.network;
  return {.batch = site.workload.micro_batch,
          .length = site.workload.sequence,
          .heads = n.heads,
          .kv_heads = site.workload.kernels.flash_attention ? n.kv_heads : n.heads,
          .head_dim = n.head_dim,
          .window = n.sliding_window};
}

KeptScores kept_by(const Site& site) {
  return site.saves("softmax_output") ? KeptScores::softmax : KeptScores::log_sums;
}
const char* name_of(KeptScores kept) {
  return kept == KeptScores::softmax ? "softmax_output" : "log_sum_exp";
}

}  // namespace

void attention(const Site& site, const Tensors&, Flow& flow, Storages& storages) {
  const Values q = site.saved(storages, "q"), k = site.saved(storages, "k"),
               v = site.saved(storages, "v");
  const KeptScores keeps = kept_by(site);
  Attended made = site.backend.attention({q, k, v}, shape_of(site), keeps, site.workload.dtype);
  if (site.saves(name_of(keeps))) site.save(storages, name_of(keeps), made.kept);
  flow.branch = std::move(made.out);
  flow.q.clear(), flow.k.clear(), flow.v.clear();
}

Tensors attention_backward(const Site& site, const Tensors&, Flow& flow, const Storages& storages) {
  const Values q = site.saved(storages, "q"), k = site.saved(storages, "k"),
               v = site.saved(storages, "v");
  const KeptScores keeps = kept_by(site);
  const Values kept = site.saved(storages, name_of(keeps));
  ProjectedGradients made = site.backend.attention_backward(
      {q, k, v}, flow.branch, kept, shape_of(site), keeps, site.workload.dtype);
  flow.q = std::move(made.q), flow.k = std::move(made.k), flow.v = std::move(made.v);
  flow.branch.clear();
  return {};
}

}  // namespace tidegate::train
