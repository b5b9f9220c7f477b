#include <algorithm>
#include <string>
#include <utility>

#include "models/base/error.hpp"
#include "sim/graph/operators.hpp"

namespace tidegate {
namespace {

// Registration order within a block: sublayer i has its projections at 10 i and its norm around.
std::int32_t norm_order(const Network& network, std::int32_t sublayer) {
  switch (network.registration) {
    case Registration::execution:
      return 10 * sublayer + (network.is_post_norm ? 5 : -5);
    case Registration::norms_first:
      return -100 + sublayer;
    case Registration::norms_last:
      return 100 + sublayer;
    case Registration::norms_after:
      return 10 * sublayer + 5;
  }
  return 0;
}

struct BlockPart {
  std::string name;
  Stream stream, encoder;  ///< encoder: what cross attention reads; length 0 without
  bool is_causal = true;
  bool is_first = false;  ///< of its stack: owns the table of relative positions
};

// One sublayer with its norm and residual sum; `body` appends what stands between.
template <class Body>
void add_sublayer(LayerBuilder& layer, const Stream& stream, const std::string& name,
                  std::int32_t index, std::int32_t input, Body body) {
  const Network& n = layer.network();
  const auto norm = [&](std::int32_t storage) {
    Operator& op = layer.add(name + "_norm");
    add_norm(layer, op, {name + "_norm", stream.rows, n.hidden, storage, norm_order(n, index)});
    // The column-parallel projection that follows reads the stream whole.
    if (layer.rank().is_sharded) {
      layer.communicate(op.forward_collectives, CollectiveKind::all_gather,
                        stream.tokens * n.hidden);
    }
  };
  if (!n.is_post_norm) norm(input);
  body();
  add_residual(layer, name + "_residual", stream);
  if (n.is_post_norm) norm(layer.storage());
}

Layer make_block(const RankShape& rank, const BlockPart& part) {
  LayerBuilder layer(part.name, LayerKind::block, rank);
  const Network& n = rank.network;
  const std::int32_t input = layer.storage();
  std::int32_t index = 0;
  add_sublayer(layer, part.stream, "attention", index, input, [&] {
    add_attention(layer, {.prefix = "",
                          .queries = part.stream,
                          .keys = part.stream,
                          .is_causal = part.is_causal,
                          .has_relative_table = part.is_first && n.relative_buckets > 0,
                          .order = 10 * index});
  });
  if (part.encoder.length > 0) {
    ++index;
    add_sublayer(layer, part.stream, "cross", index, layer.storage(), [&] {
      add_attention(layer, {.prefix = "cross_",
                            .queries = part.stream,
                            .keys = part.encoder,
                            .is_causal = false,
                            .is_cross = true,
                            .order = 10 * index});
    });
  }
  ++index;
  // A parallel feed-forward part reads the block's input, which is kept once.
  const std::int32_t between = n.is_parallel_residual ? input : layer.storage();
  add_sublayer(layer, part.stream, "ffn", index, between,
               [&] { add_feed_forward(layer, part.stream, 10 * index); });
  return layer.finish(stream_bytes(rank, part.stream));
}

// `count` blocks of one stack, named prefix.0 …; all but the first are copies of one.
void add_stack(std::vector<Layer>& layers, const RankShape& rank, std::int64_t count,
               BlockPart part) {
  const std::string prefix = part.name;
  if (count == 0) return;
  part.is_first = true;
  layers.push_back(make_block(rank, part));
  layers.back().name = prefix + ".0";
  part.is_first = false;
  const Layer block = make_block(rank, part);
  for (std::int64_t i = 1; i < count; ++i) {
    layers.push_back(block);
    layers.back().name = prefix + "." + std::to_string(i);
  }
}

void add_layers(std::vector<Layer>& layers, const RankShape& rank, const Workload& w) {
  const Network& n = w.network;
  const Stream stream = rank.stream(w.sequence);
  layers.push_back(make_embedding(rank, "embedding", stream, true));
  if (n.family != Family::encoder_decoder) {
    add_stack(layers, rank, n.layers,
              {.name = "block", .stream = stream, .is_causal = n.family == Family::decoder});
    layers.push_back(make_head(rank, stream));
    return;
  }
  const Stream decoder = rank.stream(w.decoder_sequence > 0 ? w.decoder_sequence : w.sequence);
  add_stack(layers, rank, n.encoder_layers,
            {.name = "encoder", .stream = stream, .is_causal = false});
  layers.push_back(make_encoder_end(rank, stream));
  layers.push_back(make_embedding(rank, "decoder.embedding", decoder, false));
  add_stack(layers, rank, n.layers, {.name = "decoder", .stream = decoder, .encoder = stream});
  layers.push_back(make_head(rank, decoder));
}

void count_parameters(LayerGraph& graph) {
  double active = 0;
  for (const Layer& layer : graph.layers) {
    graph.parameters += layer.parameters();
    for (const Operator& op : layer.operators) {
      for (const Parameter& p : op.parameters) {
        active += op.active_fraction * static_cast<double>(p.elements);
      }
    }
  }
  graph.active_parameters = static_cast<std::int64_t>(active + 0.5);
}

}  // namespace

std::int64_t parameters_of(const Network& network) {
  return build_graph({.network = network, .sequence = 1}).parameters;
}

LayerGraph build_graph(const Workload& workload) {
  LayerGraph graph;
  graph.dtype = workload.dtype;
  graph.is_sequence_parallel = workload.sequence_parallel && workload.tensor_parallel > 1;
  graph.sequences = workload.micro_batch;
  graph.tokens = workload.micro_batch * workload.sequence;
  if (!workload.explicit_layers.empty()) {
    graph.layers = workload.explicit_layers;
    count_parameters(graph);
    return graph;
  }
  const RankShape rank(workload);
  add_layers(graph.layers, rank, workload);
  if (workload.tensor_parallel == 1) {
    count_parameters(graph);
    return graph;
  }
  const LayerGraph whole = build_graph({.network = workload.network, .sequence = 1});
  graph.parameters = whole.parameters;
  graph.active_parameters = whole.active_parameters;
  return graph;
}

}  // namespace tidegate
