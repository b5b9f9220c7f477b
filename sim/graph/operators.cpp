#include "sim/graph/operators.hpp"

#include <algorithm>
#include <utility>

#include "models/base/error.hpp"

namespace tidegate {

RankShape::RankShape(const Workload& w)
    : network(w.network),
      kernels(w.kernels),
      dtype(w.dtype),
      element(bytes_per_element(w.dtype)),
      sequences(w.micro_batch),
      ranks(w.tensor_parallel),
      is_sharded(w.sequence_parallel && w.tensor_parallel > 1),
      heads(network.heads / ranks),
      kv_heads(std::max<std::int64_t>(network.kv_heads / ranks, 1)),
      ffn(network.ffn / ranks),
      vocabulary(network.vocabulary / ranks) {
  ensure(ranks >= 1 && heads >= 1 && network.heads % ranks == 0,
         "tensor_parallel divides the heads");
  ensure(network.ffn % ranks == 0, "tensor_parallel divides the feed-forward width");
  ensure(network.vocabulary % ranks == 0, "tensor_parallel divides the vocabulary");
}

Stream RankShape::stream(std::int64_t length) const {
  const std::int64_t tokens = sequences * length;
  ensure(!is_sharded || tokens % ranks == 0, "sequence parallelism divides the tokens");
  return {length, tokens, is_sharded ? tokens / ranks : tokens};
}

namespace {

// Of a product or an attention; what else runs is as wide as the stream.
double output_elements(const Kernel& kernel) {
  if (const auto* g = std::get_if<Gemm>(&kernel)) {
    return static_cast<double>(g->m * g->n) * static_cast<double>(g->batch);
  }
  if (const auto* a = std::get_if<Attention>(&kernel)) {
    return static_cast<double>(a->batch * a->heads * a->queries) * static_cast<double>(a->head_dim);
  }
  return 0;
}

}  // namespace

LayerBuilder::LayerBuilder(std::string name, LayerKind kind, const RankShape& rank) : rank_(rank) {
  layer_.name = std::move(name);
  layer_.kind = kind;
  layer_.operators.reserve(24);  // references to operators stay good while a layer is built
}

Operator& LayerBuilder::add(std::string name) {
  ensure(layer_.operators.size() < layer_.operators.capacity(), "a layer has at most 24 operators");
  Operator& op = layer_.operators.emplace_back();
  op.name = std::move(name);
  return op;
}

void LayerBuilder::save(Operator& op, const std::string& name, double bytes, std::int32_t identity,
                        double width) const {
  op.saved.push_back({name, Bytes(bytes), identity, static_cast<std::int64_t>(bytes / width)});
}

void LayerBuilder::communicate(std::vector<Collective>& list, CollectiveKind kind,
                               std::int64_t elements) const {
  if (rank_.ranks == 1) return;
  const Bytes bytes(rank_.element * static_cast<double>(elements));
  list.push_back({kind, bytes, static_cast<std::int32_t>(rank_.ranks)});
}

void LayerBuilder::communicate_leaving(std::vector<Collective>& list, std::int64_t elements) const {
  const bool is_sharded = rank_.is_sharded;
  communicate(list, is_sharded ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
              elements);
}

void LayerBuilder::communicate_entering(Operator& op, std::int64_t elements) const {
  if (rank_.is_sharded) communicate(op.beside_backward, CollectiveKind::all_gather, elements);
  communicate_leaving(op.backward_collectives, elements);
}

Layer LayerBuilder::finish(Bytes input, Bytes workspace) {
  layer_.input = input;
  layer_.workspace = workspace;
  for (Operator& op : layer_.operators) {
    for (const Kernel& kernel : op.forward) {
      op.output = std::max(op.output, Bytes(rank_.element * output_elements(kernel)));
      if (std::holds_alternative<Gemm>(kernel)) {
        layer_.workspace = std::max(layer_.workspace, op.output);
      }
    }
    if (op.output == Bytes(0)) op.output = input;
  }
  return std::move(layer_);
}

Kernel elementwise(double bytes_per_element, std::int64_t elements, std::int32_t launches) {
  return Elementwise{Bytes(bytes_per_element * static_cast<double>(elements)), launches};
}

void add_linear(const RankShape& rank, Operator& op, std::int64_t tokens, const Linear& l) {
  op.forward.push_back(Gemm{tokens, l.out, l.in, 1, rank.dtype});
  op.backward.push_back(Gemm{tokens, l.in, l.out, 1, rank.dtype});
  op.backward.push_back(Gemm{l.out, l.in, tokens, 1, rank.dtype});
  op.parameters.push_back({l.name + ".weight", l.in * l.out, false, l.order});
  if (!l.has_bias) return;
  op.backward.push_back(elementwise(rank.element, tokens * l.out));
  op.parameters.push_back({l.name + ".bias", l.out, true, l.order});
}

namespace {

// One kernel that reads x and writes y. Backward reads x and dy for dx, and both again for the
// gradients of weight and bias. In fp32 inside a 16-bit stream, a cast stands on either side.
void fused_norm(LayerBuilder& layer, Operator& op, const Norm& norm) {
  const RankShape& rank = layer.rank();
  const std::int64_t elements = norm.rows * norm.width;
  const double e = rank.element;
  const bool is_cast = rank.kernels.fp32_norm && e < 4;
  const double inside = is_cast ? 4 : e;
  const double casts = is_cast ? 2 * (e + 4) : 0;
  op.forward.push_back(elementwise(2 * inside + casts, elements, is_cast ? 3 : 1));
  op.backward.push_back(elementwise(5 * inside + casts, elements, is_cast ? 4 : 2));
  const double bytes = inside * static_cast<double>(elements);
  if (is_cast) {
    layer.save_as(4, op, norm.name + "_fp32_input", bytes);
  } else {
    layer.save(op, norm.name + "_input", bytes, norm.input);
  }
}

// RMS norm as transformers writes it, each line a kernel, in fp32 inside a 16-bit stream.
// Forward: cast e+4, square 8, mean 4, scale 8, cast 4+e, weight 2e; in fp32 without the casts.
// Backward: weight gradient 4e, input of the weight product 2e, cast e+4, scale 8, gradient of the
// root 16, of the square 24, of the mean 4, sum 12, cast 4+e.
// Kept: the fp32 input (read by square and scale) and the normalised value (read by the product).
void eager_rms_norm(LayerBuilder& layer, Operator& op, const Norm& norm) {
  const RankShape& rank = layer.rank();
  const std::int64_t elements = norm.rows * norm.width;
  const double e = rank.element;
  const bool is_cast = e < 4;
  const double casts = is_cast ? 2 * (e + 4) : 0;
  op.forward.push_back(elementwise(casts + 20 + 2 * e, elements, is_cast ? 8 : 6));
  op.backward.push_back(elementwise(casts + 64 + 6 * e, elements, is_cast ? 15 : 13));
  const auto count = static_cast<double>(elements);
  if (is_cast) {
    layer.save_as(4, op, norm.name + "_fp32_input", 4 * count);
  } else {
    layer.save(op, norm.name + "_input", 4 * count, norm.input);
  }
  layer.save(op, norm.name + "_normalized", e * count);
}

}  // namespace

void add_norm(LayerBuilder& layer, Operator& op, const Norm& norm) {
  const Network& network = layer.network();
  // torch has a fused kernel for layer norm in any case; only RMS norm is ever spelled out.
  if (network.norm == NormKind::layer_norm || layer.rank().kernels.fused_norm) {
    fused_norm(layer, op, norm);
  } else {
    eager_rms_norm(layer, op, norm);
  }
  op.parameters.push_back({norm.name + ".weight", norm.width, true, norm.order});
  if (network.norm == NormKind::layer_norm && network.has_norm_bias) {
    op.parameters.push_back({norm.name + ".bias", norm.width, true, norm.order});
  }
}

void add_residual(LayerBuilder& layer, const std::string& name, const Stream& stream) {
  const RankShape& rank = layer.rank();
  const std::int64_t elements = stream.rows * rank.network.hidden;
  const double e = rank.element;
  const bool drops = rank.kernels.hidden_dropout > 0;
  Operator& op = layer.add(name);
  if (drops) {
    // Reads x, writes y and a one-byte mask; backward reads dy and the mask and writes dx. Fused,
    // one kernel also reads the stream and writes the sum in y's place; backward is the same, as
    // autograd sums the gradients of the stream's two readers by a kernel of its own.
    if (!rank.kernels.fused_residual) op.forward.push_back(elementwise(2 * e + 1, elements));
    op.backward.push_back(elementwise(2 * e + 1, elements));
    layer.save_as(1, op, "dropout_mask", static_cast<double>(elements));
  }
  const double mask = drops && rank.kernels.fused_residual ? 1 : 0;
  op.forward.push_back(elementwise(3 * e + mask, elements));
  op.backward.push_back(elementwise(3 * e, elements));
  // The gradient enters the row-parallel projection whole.
  if (rank.is_sharded) {
    layer.communicate(op.backward_collectives, CollectiveKind::all_gather,
                      stream.tokens * rank.network.hidden);
  }
}

}  // namespace tidegate
