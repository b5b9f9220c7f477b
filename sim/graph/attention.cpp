#include "sim/graph/operators.hpp"

namespace tidegate {
namespace {

// T5's learned bias on the scores needs a gradient, which no flash kernel gives.
bool is_flash(const RankShape& rank) {
  return rank.kernels.flash_attention && rank.network.positions != Positions::relative_bias;
}

void add_projection_kernels(const RankShape& rank, Operator& op, const AttentionPart& part) {
  const Network& n = rank.network;
  const std::int64_t h = n.hidden, q = rank.query_width(), kv = rank.key_width();
  const bool bias = n.has_attention_bias;
  const std::string& p = part.prefix;
  if (n.has_fused_qkv && !part.is_cross) {
    add_linear(rank, op, part.queries.tokens, {p + "qkv", h, q + 2 * kv, bias, part.order});
    return;
  }
  add_linear(rank, op, part.queries.tokens, {p + "q", h, q, bias, part.order});
  int readers = 1;
  if (n.has_fused_projections) {
    add_linear(rank, op, part.keys.tokens, {p + "kv", h, 2 * kv, bias, part.order});
    readers = 2;
  } else {
    add_linear(rank, op, part.keys.tokens, {p + "k", h, kv, bias, part.order});
    add_linear(rank, op, part.keys.tokens, {p + "v", h, kv, bias, part.order});
    readers = 3;
  }
  // The encoder's output also collects gradients from every decoder block: one sum per reader.
  op.backward.push_back(
      elementwise(3 * rank.element, part.keys.tokens * h * (readers - 1), readers - 1));
}

Operator& add_projections(LayerBuilder& layer, const AttentionPart& part) {
  const RankShape& rank = layer.rank();
  const std::int64_t h = rank.network.hidden;
  const std::int64_t entering = part.queries.tokens * h;
  Operator& op = layer.add(part.prefix + "qkv");
  add_projection_kernels(rank, op, part);
  layer.save(op, part.prefix + "qkv_input",
             rank.element * static_cast<double>(part.queries.rows * h));
  layer.communicate_entering(op, entering);
  if (part.is_cross) {
    layer.communicate(op.backward_collectives, CollectiveKind::all_reduce, part.keys.tokens * h);
  }
  return op;
}

void add_qk_norm(LayerBuilder& layer, const AttentionPart& part) {
  const RankShape& rank = layer.rank();
  const std::int64_t width = rank.network.head_dim;
  const std::int32_t order = part.order + 1;  // registered behind the projections
  Operator& op = layer.add(part.prefix + "qk_norm");
  add_norm(
      layer, op,
      {part.prefix + "q_norm", part.queries.tokens * rank.heads, width, layer.storage(), order});
  add_norm(
      layer, op,
      {part.prefix + "k_norm", part.keys.tokens * rank.kv_heads, width, layer.storage(), order});
}

// q·cos + rotate_half(q)·sin in eager kernels: product 2e, half negated e, joined 2e, product 2e,
// sum 3e per element; cos and sin are shared by all heads and stay in cache. Backward 12e: the two
// products 4e, slices and negation 5e, sum 3e (assumed: zero-filled slices stay in cache).
void add_rotary(LayerBuilder& layer, const AttentionPart& part) {
  const RankShape& rank = layer.rank();
  const auto rotated = static_cast<std::int64_t>(
      rank.network.rotary_fraction *
      static_cast<double>(part.queries.tokens * (rank.query_width() + rank.key_width())));
  Operator& op = layer.add("rotary");
  op.forward.push_back(elementwise(10 * rank.element, rotated, 10));
  op.backward.push_back(elementwise(12 * rank.element, rotated, 12));
}

// q, k and v are kept by the core, whose backward reads them, and by the operator that makes them,
// so that selective recomputation, which drops what the core alone keeps, leaves them. Without
// flash attention, keys and values of grouped heads are copied to every query head first: read the
// group, write all.
std::vector<SavedTensor> keep_projections(LayerBuilder& layer, Operator& op,
                                          const AttentionPart& part) {
  const RankShape& rank = layer.rank();
  const double e = rank.element;
  const auto q = static_cast<double>(part.queries.tokens * rank.query_width());
  const std::int64_t keys = part.keys.tokens;
  const bool is_repeated = !is_flash(rank) && rank.kv_heads < rank.heads;
  if (is_repeated) {
    const std::int64_t moved = keys * (rank.key_width() + rank.query_width());
    op.forward.push_back(elementwise(e, 2 * moved, 2));
    op.backward.push_back(elementwise(e, 2 * moved, 2));
  }
  const std::int64_t width = is_repeated ? rank.query_width() : rank.key_width();
  layer.save(op, part.prefix + "q", e * q);
  layer.save(op, part.prefix + "k", e * static_cast<double>(keys * width));
  layer.save(op, part.prefix + "v", e * static_cast<double>(keys * width));
  return {op.saved.end() - 3, op.saved.end()};
}

// Keys that a query sees on average: under a causal sliding window w < s of s queries,
// w - w(w-1)/(2s).
Attention flash_shape(const RankShape& rank, const AttentionPart& part) {
  Attention shape{
      rank.sequences,        rank.heads,     rank.kv_heads, part.queries.length, part.keys.length,
      rank.network.head_dim, part.is_causal, false,         rank.dtype};
  const std::int64_t window = rank.network.sliding_window;
  if (part.is_causal && window > 0 && window < part.keys.length) {
    shape.keys = window - window * (window - 1) / (2 * part.queries.length);
    shape.causal = false;
  }
  return shape;
}

void add_flash_core(LayerBuilder& layer, const AttentionPart& part) {
  const RankShape& rank = layer.rank();
  Attention shape = flash_shape(rank, part);
  Operator& op = layer.add(part.prefix + "attention");
  op.is_attention_core = true;
  op.forward.push_back(shape);
  shape.backward = true;
  op.backward.push_back(shape);
  // One fp32 log-sum-exp per query and head; dropout is replayed from its seed.
  layer.save_as(4, op, "log_sum_exp", 4.0 * static_cast<double>(part.queries.tokens * rank.heads));
}

// Scores in memory: GEMM, one kernel that scales, masks and normalises (Megatron's; 2e per score,
// 3e in backward), dropout with a one-byte mask (2e + 1), GEMM. All s × s scores are computed, also
// under a causal mask.
void add_eager_core(LayerBuilder& layer, const AttentionPart& part) {
  const RankShape& rank = layer.rank();
  const std::int64_t batch = rank.sequences * rank.heads, d = rank.network.head_dim;
  const std::int64_t s = part.queries.length, k = part.keys.length, scores = batch * s * k;
  const double e = rank.element;
  const auto count = static_cast<double>(scores);
  Operator& op = layer.add(part.prefix + "attention");
  op.is_attention_core = true;
  op.forward.push_back(Gemm{s, k, d, batch, rank.dtype});
  op.backward.push_back(Gemm{s, k, d, batch, rank.dtype});
  op.backward.push_back(Gemm{k, d, s, batch, rank.dtype});
  if (rank.network.positions == Positions::relative_bias && !part.is_cross) {
    // The bias is read once per sequence and added in place; its gradient reads the scores' once.
    op.forward.push_back(elementwise(3 * e, scores));
    op.backward.push_back(elementwise(e, scores));
  }
  op.forward.push_back(elementwise(2 * e, scores));
  layer.save(op, "softmax_output", e * count);
  if (rank.kernels.attention_dropout > 0) {
    op.forward.push_back(elementwise(2 * e + 1, scores));
    op.backward.push_back(elementwise(2 * e + 1, scores));
    layer.save_as(1, op, "softmax_dropout_mask", count);
    layer.save(op, "softmax_dropout_output", e * count);
  }
  op.backward.push_back(elementwise(3 * e, scores));
  op.forward.push_back(Gemm{s, d, k, batch, rank.dtype});
  op.backward.push_back(Gemm{s, d, k, batch, rank.dtype});
  op.backward.push_back(Gemm{k, d, s, batch, rank.dtype});
}

void add_output_projection(LayerBuilder& layer, const AttentionPart& part) {
  const RankShape& rank = layer.rank();
  const Network& n = rank.network;
  const std::int64_t leaving = part.queries.tokens * n.hidden;
  Operator& op = layer.add(part.prefix + "output");
  add_linear(rank, op, part.queries.tokens,
             {part.prefix + "o", rank.query_width(), n.hidden, n.has_output_bias, part.order});
  layer.save(op, "projection_input",
             rank.element * static_cast<double>(part.queries.tokens * rank.query_width()));
  layer.communicate_leaving(op.forward_collectives, leaving);
}

}  // namespace

void add_attention(LayerBuilder& layer, const AttentionPart& part) {
  const RankShape& rank = layer.rank();
  const Network& n = rank.network;
  add_projections(layer, part);
  if (n.has_qk_norm) add_qk_norm(layer, part);
  if (n.positions == Positions::rotary && !part.is_cross) add_rotary(layer, part);
  const auto projections = keep_projections(layer, layer.last(), part);
  if (is_flash(rank)) {
    add_flash_core(layer, part);
  } else {
    add_eager_core(layer, part);
  }
  Operator& core = layer.last();
  core.saved.insert(core.saved.begin(), projections.begin(), projections.end());
  if (part.has_relative_table) {
    const std::int64_t elements = n.relative_buckets * rank.heads;
    layer.last().parameters.push_back({"relative_bias.weight", elements, false, part.order + 1});
  }
  add_output_projection(layer, part);
}

}  // namespace tidegate
