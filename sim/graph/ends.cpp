#include <algorithm>

#include "sim/graph/operators.hpp"

namespace tidegate {

Bytes stream_bytes(const RankShape& rank, const Stream& stream) {
  return Bytes(rank.element * static_cast<double>(stream.rows * rank.network.hidden));
}

namespace {

// Gathers one row per token (reads and writes e each); backward zeroes the dense gradient of the
// table and adds the rows by kernels that sort the tokens first (3e per element, 4 launches
// assumed).
void add_table(LayerBuilder& layer, Operator& op, const std::string& name, std::int64_t vectors,
               const Stream& stream) {
  const RankShape& rank = layer.rank();
  const std::int64_t h = rank.network.hidden, elements = stream.tokens * h;
  op.forward.push_back(elementwise(2 * rank.element, elements));
  op.backward.push_back(elementwise(rank.element, vectors * h));
  op.backward.push_back(elementwise(3 * rank.element, elements, 4));
  op.parameters.push_back({name + ".weight", vectors * h, false, 0});
}

// Further tables are added to the token rows: one kernel that reads two and writes one.
void add_position_tables(LayerBuilder& layer, Operator& op, const Stream& stream) {
  const Network& n = layer.network();
  const double e = layer.rank().element;
  const bool is_learned = n.positions == Positions::learned;
  if (is_learned) add_table(layer, op, "positions", n.max_positions, stream);
  if (n.token_types > 0) add_table(layer, op, "token_types", n.token_types, stream);
  const int sums = (is_learned ? 1 : 0) + (n.token_types > 0 ? 1 : 0);
  if (sums > 0) op.forward.push_back(elementwise(3 * e * sums, stream.tokens * n.hidden, sums));
}

void add_embedding_tail(LayerBuilder& layer, const Stream& stream) {
  const RankShape& rank = layer.rank();
  const Network& n = rank.network;
  const std::int64_t elements = stream.rows * n.hidden;
  if (n.has_embedding_norm) {
    Operator& norm = layer.add("norm");
    add_norm(layer, norm, {"norm", stream.rows, n.hidden, layer.storage(), 0});
  }
  if (rank.kernels.hidden_dropout > 0) {
    Operator& dropout = layer.add("dropout");
    dropout.forward.push_back(elementwise(2 * rank.element + 1, elements));
    dropout.backward.push_back(elementwise(2 * rank.element + 1, elements));
    layer.save_as(1, dropout, "dropout_mask", static_cast<double>(elements));
  }
}

}  // namespace

Layer make_embedding(const RankShape& rank, const std::string& name, const Stream& stream,
                     bool owns) {
  LayerBuilder layer(name, LayerKind::embedding, rank);
  const Network& n = rank.network;
  Operator& op = layer.add("tokens");
  add_table(layer, op, "tokens", rank.vocabulary, stream);
  if (!owns) op.parameters.clear();
  const double identifiers = 8.0 * static_cast<double>(stream.tokens);  // int64
  layer.save_as(8, op, "token_ids", identifiers);
  layer.communicate_leaving(op.forward_collectives, stream.tokens * n.hidden);
  if (rank.is_sharded) {
    layer.communicate(op.backward_collectives, CollectiveKind::all_gather,
                      stream.tokens * n.hidden);
  }
  add_position_tables(layer, op, stream);
  add_embedding_tail(layer, stream);
  return layer.finish(Bytes(identifiers), stream_bytes(rank, stream));
}

Layer make_encoder_end(const RankShape& rank, const Stream& stream) {
  LayerBuilder layer("encoder.norm", LayerKind::other, rank);
  Operator& op = layer.add("norm");
  add_norm(layer, op, {"final_norm", stream.rows, rank.network.hidden, layer.storage(), 0});
  layer.save(op, "encoder_output", stream_bytes(rank, stream).value());
  return layer.finish(stream_bytes(rank, stream));
}

namespace {

// Cross entropy of torch over [tokens, vocabulary / t].
// Traffic: cast to fp32 e+4, log-softmax 8; backward zeroes the gradient of the chosen entries 4,
// log-softmax 12, cast 4+e. Kept: the fp32 log-softmax, and the logits, which the model's output
// holds until the step ends. At the peak, in backward, two fp32 gradients more: the workspace.
// Fused with the projection (Liger): logits exist for one chunk of tokens at a time, vocabulary /
// hidden chunks, in fp32 and in 16 bits; all three GEMMs really run in forward, and the gradient of
// the input is kept instead of logits.
Bytes add_torch_loss(LayerBuilder& layer, Operator& op, const Stream& stream) {
  const RankShape& rank = layer.rank();
  const std::int64_t logits = stream.tokens * rank.vocabulary;
  const auto count = static_cast<double>(logits);
  const double e = rank.element;
  op.forward.push_back(elementwise(e + 12, logits, 3));
  op.backward.push_back(elementwise(20 + e, logits, 3));
  if (rank.kernels.fused_cross_entropy) {
    const auto h = rank.network.hidden;
    const std::int64_t chunks = std::max<std::int64_t>((rank.vocabulary + h - 1) / h, 1);
    layer.save(op, "input_gradient", e * static_cast<double>(stream.tokens * h));
    return Bytes((4 + e) * count / static_cast<double>(chunks));
  }
  layer.save_as(4, op, "log_softmax", 4 * count);
  layer.save(op, "logits", e * count);
  return Bytes(8 * count);
}

// Megatron-LM's vocabulary-parallel cross entropy over w-byte numbers. Traffic: cast e + w unless
// the types are one, maximum w, difference 2w, exponential 2w, sum w, division 2w; backward scales
// in place 2w and casts. Kept: the softmax, in the place of the logits.
Bytes add_parallel_loss(LayerBuilder& layer, Operator& op, const Stream& stream) {
  const RankShape& rank = layer.rank();
  const std::int64_t logits = stream.tokens * rank.vocabulary;
  const double e = rank.element, w = rank.kernels.half_cross_entropy ? e : 4;
  const double cast = w == e ? 0 : e + w;
  op.forward.push_back(elementwise(cast + 8 * w, logits, w == e ? 5 : 6));
  op.backward.push_back(elementwise(2 * w + cast, logits, w == e ? 1 : 2));
  layer.save_as(w, op, "softmax", w * static_cast<double>(logits));
  return Bytes(w == e ? 0 : e * static_cast<double>(logits));
}

Bytes add_loss(LayerBuilder& layer, const Stream& stream) {
  const RankShape& rank = layer.rank();
  Operator& op = layer.add("loss");
  for (int reduced = 0; reduced < 3 && rank.ranks > 1; ++reduced) {  // maximum, target, sum: fp32
    const Bytes bytes(4.0 * static_cast<double>(stream.tokens));
    op.forward_collectives.push_back(
        {CollectiveKind::all_reduce, bytes, static_cast<std::int32_t>(rank.ranks)});
  }
  return rank.kernels.parallel_cross_entropy ? add_parallel_loss(layer, op, stream)
                                             : add_torch_loss(layer, op, stream);
}

// BERT's masked-language head before its projection: dense, activation, norm.
void add_transform(LayerBuilder& layer, const Stream& stream) {
  const RankShape& rank = layer.rank();
  const std::int64_t h = rank.network.hidden, elements = stream.tokens * h;
  const double bytes = rank.element * static_cast<double>(elements);
  Operator& op = layer.add("transform");
  add_linear(rank, op, stream.tokens, {"transform", h, h, true, 0});
  op.forward.push_back(elementwise(2 * rank.element, elements));
  op.backward.push_back(elementwise(3 * rank.element, elements));
  layer.save(op, "transform_input", bytes);
  layer.save(op, "activation_input", bytes);
  add_norm(layer, op, {"transform_norm", stream.tokens, h, layer.storage(), 0});
}

}  // namespace

Layer make_head(const RankShape& rank, const Stream& stream) {
  LayerBuilder layer("head", LayerKind::head, rank);
  const Network& n = rank.network;
  const Bytes input = stream_bytes(rank, stream);
  if (n.has_final_norm) {
    Operator& norm = layer.add("final_norm");
    add_norm(layer, norm, {"final_norm", stream.rows, n.hidden, layer.storage(), 0});
    if (rank.is_sharded) {
      layer.communicate(norm.forward_collectives, CollectiveKind::all_gather,
                        stream.tokens * n.hidden);
    }
  }
  if (n.head == Head::pooler) {
    Operator& pooler = layer.add("pooler");
    add_linear(rank, pooler, rank.sequences, {"pooler", n.hidden, n.hidden, true, 0});
    return layer.finish(input);
  }
  const bool is_masked = n.head == Head::masked_language_model;
  if (is_masked) add_transform(layer, stream);
  Operator& op = layer.add("projection");
  add_linear(rank, op, stream.tokens, {"projection", n.hidden, rank.vocabulary, is_masked, 0});
  if (n.is_tied) {
    std::erase_if(op.parameters, [](const Parameter& p) { return p.name == "projection.weight"; });
  }
  if (!rank.kernels.fused_cross_entropy) layer.save(op, "projection_input", input.value());
  layer.communicate_entering(op, stream.tokens * n.hidden);
  const Bytes workspace = add_loss(layer, stream);
  if (!rank.kernels.fused_cross_entropy) return layer.finish(input, workspace);
  Layer head = layer.finish(input);
  head.workspace = workspace;  // no logits of all tokens
  return head;
}

}  // namespace tidegate
