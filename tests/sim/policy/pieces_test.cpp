#include "sim/policy/pieces.hpp"

#include <string>

#include "sim/graph/workload.hpp"
#include "tests/catch.hpp"

using namespace tidegate;

namespace {

// "e" embedding, "b" block, "h" head.
LayerGraph network(const std::string& kinds) {
  LayerGraph graph;
  for (const char kind : kinds) {
    Layer layer;
    layer.kind = kind == 'b'   ? LayerKind::block
                 : kind == 'e' ? LayerKind::embedding
                               : LayerKind::head;
    layer.name = kind + std::to_string(graph.layers.size());
    graph.layers.push_back(layer);
  }
  return graph;
}

using Pieces = std::vector<Piece>;

}  // namespace

TEST_CASE("blocks are divided evenly; the ends belong to the first and last piece", "[pieces]") {
  // Layers 0 to 5: e b b b b h.
  CHECK(pieces_of(network("ebbbbh"), {.pipeline = 2}) == Pieces{{0, 3}, {3, 6}});
  CHECK(pieces_of(network("ebbbbh"), {.pipeline = 4}) == Pieces{{0, 2}, {2, 3}, {3, 4}, {4, 6}});
  CHECK(pieces_of(network("ebbbbh"), {.pipeline = 2, .chunks = 2}) ==
        Pieces{{0, 2}, {2, 3}, {3, 4}, {4, 6}});
  CHECK(pieces_of(network("ebbbbh"), {}) == Pieces{{0, 6}});
}

TEST_CASE("what does not divide goes to the earlier pieces", "[pieces]") {
  // 5 blocks in 3 pieces: 2, 2, 1.
  CHECK(pieces_of(network("ebbbbbh"), {.pipeline = 3}) == Pieces{{0, 3}, {3, 5}, {5, 7}});
}

TEST_CASE("layers between blocks go with the block behind them", "[pieces]") {
  // An encoder-decoder: e bb (encoder), h (its last norm), e (decoder's), bb, h. Pieces of two
  // blocks: the decoder's embedding stands before its first block.
  CHECK(pieces_of(network("ebbhebbh"), {.pipeline = 2}) == Pieces{{0, 3}, {3, 8}});
}

TEST_CASE("a stage's graph has the layers of all its chunks", "[pieces]") {
  const LayerGraph graph = network("ebbbbh");
  const auto pieces = pieces_of(graph, {.pipeline = 2, .chunks = 2});
  const auto names = [&](std::size_t stage) {
    std::string all;
    for (const Layer& layer : stage_graph(graph, pieces, stage, 2).layers) all += layer.name;
    return all;
  };
  CHECK(names(0) == "e0b1b3");
  CHECK(names(1) == "b2b4h5");
}

TEST_CASE("a real encoder-decoder is cut at its blocks", "[pieces]") {
  Workload workload;
  workload.network = {.family = Family::encoder_decoder,
                      .layers = 3,
                      .encoder_layers = 3,
                      .hidden = 64,
                      .ffn = 128,
                      .heads = 4,
                      .kv_heads = 4,
                      .head_dim = 16,
                      .vocabulary = 100};
  workload.sequence = 8;
  const LayerGraph graph = build_graph(workload);
  const auto pieces = pieces_of(graph, {.pipeline = 2});
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[0].last == pieces[1].first);
  CHECK(pieces[1].last == graph.layers.size());
  int blocks = 0;  // three encoder blocks before the border
  for (std::size_t l = 0; l < pieces[0].last; ++l) {
    blocks += graph.layers[l].kind == LayerKind::block ? 1 : 0;
  }
  CHECK(blocks == 3);
  CHECK(graph.layers[pieces[0].last - 1].kind == LayerKind::block);
}
