#include <algorithm>

#include "sim/graph/operators.hpp"

namespace tidegate {
namespace {

void add_up(LayerBuilder& layer, const Stream& stream, std::int32_t order) {
  const RankShape& rank = layer.rank();
  const Network& n = rank.network;
  const std::int64_t entering = stream.tokens * n.hidden;
  Operator& op = layer.add("ffn_up");
  if (!n.has_gated_ffn) {
    add_linear(rank, op, stream.tokens, {"up", n.hidden, rank.ffn, n.has_ffn_bias, order});
  } else if (n.has_fused_projections) {
    add_linear(rank, op, stream.tokens, {"gate_up", n.hidden, 2 * rank.ffn, n.has_ffn_bias, order});
  } else {
    add_linear(rank, op, stream.tokens, {"gate", n.hidden, rank.ffn, n.has_ffn_bias, order});
    add_linear(rank, op, stream.tokens, {"up", n.hidden, rank.ffn, n.has_ffn_bias, order});
    op.backward.push_back(elementwise(3 * rank.element, entering));
  }
  layer.save(op, "ffn_input", rank.element * static_cast<double>(stream.rows * n.hidden));
  layer.communicate_entering(op, entering);
}

// The down projection's weight gradient reads the activation's output: kept, or made again by one
// kernel that reads the activation's inputs.
void keep_activation_output(LayerBuilder& layer, Operator& op, std::int64_t elements,
                            std::int32_t output) {
  const RankShape& rank = layer.rank();
  if (!rank.kernels.fused_activation) {
    layer.save(op, "down_input", rank.element * static_cast<double>(elements), output);
    return;
  }
  const int operands = rank.network.has_gated_ffn ? 3 : 2;
  op.backward.insert(op.backward.begin(), elementwise(operands * rank.element, elements));
}

void add_down(LayerBuilder& layer, const Stream& stream, std::int32_t order) {
  const RankShape& rank = layer.rank();
  const Network& n = rank.network;
  const std::int64_t elements = stream.tokens * rank.ffn;
  const std::int32_t output = layer.storage();
  add_activation(layer, elements, output);
  Operator& op = layer.add("ffn_down");
  add_linear(rank, op, stream.tokens, {"down", rank.ffn, n.hidden, n.has_ffn_bias, order});
  keep_activation_output(layer, op, elements, output);
  layer.communicate_leaving(op.forward_collectives, stream.tokens * n.hidden);
}

// Linear router in the stream's type, then softmax in fp32, choice of the experts and weights:
// five passes over [tokens, experts] in fp32 (assumed).
void add_router(LayerBuilder& layer, const Stream& stream, std::int32_t order) {
  const RankShape& rank = layer.rank();
  const Network& n = rank.network;
  const std::int64_t choices = stream.tokens * n.experts;
  Operator& op = layer.add("router");
  add_linear(rank, op, stream.tokens, {"router", n.hidden, n.experts, false, order});
  op.forward.push_back(elementwise(20, choices, 5));
  op.backward.push_back(elementwise(20, choices, 5));
  layer.save(op, "ffn_input", rank.element * static_cast<double>(stream.rows * n.hidden));
  layer.save_as(4, op, "router_probabilities", 4.0 * static_cast<double>(choices));
}

struct Share {
  std::int64_t experts;  ///< with any token at all
  std::int64_t tokens;   ///< of each
};
// Tokens split evenly; the last expert's remainder is rounded up.
Share share_of(std::int64_t routed, std::int64_t experts) {
  const std::int64_t busy = std::min(routed, experts);
  return {busy, (routed + busy - 1) / busy};
}

void add_expert_linear(const RankShape& rank, Operator& op, const Share& share, std::int64_t in,
                       std::int64_t out) {
  op.forward.push_back(Gemm{share.tokens, out, in, share.experts, rank.dtype});
  op.backward.push_back(Gemm{share.tokens, in, out, share.experts, rank.dtype});
  op.backward.push_back(Gemm{out, in, share.tokens, share.experts, rank.dtype});
}

void add_expert_parameters(const RankShape& rank, Operator& op, std::int32_t order) {
  const Network& n = rank.network;
  for (std::int64_t i = 0; i < n.experts; ++i) {
    const std::string name = "expert" + std::to_string(i);
    if (n.has_gated_ffn)
      op.parameters.push_back({name + ".gate", n.hidden * rank.ffn, false, order});
    op.parameters.push_back({name + ".down", rank.ffn * n.hidden, false, order});
    op.parameters.push_back({name + ".up", n.hidden * rank.ffn, false, order});
  }
}

// Every routed copy of a token is gathered for its expert (2e per element), transformed, weighted
// (2e) and added back (3e); backward the same. Kept: the gathered input, and the expert's output
// for the gradient of its weight.
void add_experts(LayerBuilder& layer, const Stream& stream, std::int32_t order) {
  const RankShape& rank = layer.rank();
  const Network& n = rank.network;
  const std::int64_t routed = stream.tokens * n.experts_per_token;
  const Share share = share_of(routed, n.experts);
  const double fraction = static_cast<double>(n.experts_per_token) / static_cast<double>(n.experts);
  const double rows = rank.element * static_cast<double>(routed * n.hidden);
  Operator& up = layer.add("experts_up");
  up.active_fraction = fraction;
  up.forward.push_back(elementwise(2 * rank.element, routed * n.hidden));
  add_expert_linear(rank, up, share, n.hidden, (n.has_gated_ffn ? 2 : 1) * rank.ffn);
  up.backward.push_back(elementwise(3 * rank.element, routed * n.hidden));
  add_expert_parameters(rank, up, order);
  layer.save(up, "expert_input", rows);
  layer.communicate_entering(up, stream.tokens * n.hidden);
  const std::int32_t output = layer.storage();
  add_activation(layer, routed * rank.ffn, output);
  Operator& down = layer.add("experts_down");
  add_expert_linear(rank, down, share, rank.ffn, n.hidden);
  down.forward.push_back(elementwise(5 * rank.element, routed * n.hidden, 2));
  down.backward.push_back(elementwise(4 * rank.element, routed * n.hidden, 2));
  keep_activation_output(layer, down, routed * rank.ffn, output);
  layer.save(down, "expert_output", rows);
  layer.communicate_leaving(down.forward_collectives, stream.tokens * n.hidden);
}

}  // namespace

// Plain: 2e forward, 3e backward. With a gate: activation 2e and product 3e in two kernels;
// backward 6e for the product's two gradients and 3e for the activation's. A fused gate reads both
// and writes one (3e), and backward reads three and writes two (5e). Kept by PyTorch: the
// activation's input (ReLU: its output instead), the product's two operands.
void add_activation(LayerBuilder& layer, std::int64_t elements, std::int32_t output) {
  const RankShape& rank = layer.rank();
  const bool is_gated = rank.network.has_gated_ffn;
  const bool is_fused = rank.kernels.fused_activation;
  const bool is_relu = rank.network.activation == Activation::relu && !is_fused;
  const double e = rank.element;
  const double bytes = e * static_cast<double>(elements);
  Operator& op = layer.add("activation");
  if (!is_gated) {
    op.forward.push_back(elementwise(2 * e, elements));
    op.backward.push_back(elementwise(3 * e, elements));
    layer.save(op, is_relu ? "activation_output" : "activation_input", bytes,
               is_relu ? output : layer.storage());
    return;
  }
  op.forward.push_back(is_fused ? elementwise(3 * e, elements) : elementwise(5 * e, elements, 2));
  op.backward.push_back(is_fused ? elementwise(5 * e, elements) : elementwise(9 * e, elements, 3));
  if (!is_relu) layer.save(op, "gate", bytes);
  layer.save(op, "up", bytes);
  if (!is_fused) layer.save(op, "gate_activation", bytes);
}

void add_feed_forward(LayerBuilder& layer, const Stream& stream, std::int32_t order) {
  if (layer.network().experts > 0) {
    add_router(layer, stream, order);
    add_experts(layer, stream, order);
    return;
  }
  add_up(layer, stream, order);
  add_down(layer, stream, order);
}

}  // namespace tidegate
