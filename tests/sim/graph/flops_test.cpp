#include "tests/catch.hpp"
#include "tests/sim/graph/networks.hpp"

using namespace tidegate;

// Narayanan et al. 2021 and Korthikanti et al. 2022, equation 7: 72 B L s h² (1 + s/6h + v/12hL),
// which counts the whole score matrix; so does attention without fusion here.
TEST_CASE("FLOPs of a GPT step meet the published formula", "[flops]") {
  Workload w = gpt(48, 6144, 64);
  w.micro_batch = 4;
  const double b = 4, l = 48, s = 2048, h = 6144, v = 51200;
  const double model = 72 * b * l * s * h * h * (1 + s / (6 * h) + v / (12 * h * l));
  const LayerGraph graph = build_graph(w);
  const Flops step = graph.forward_flops() + graph.backward_flops();
  CHECK(step.value() == Approx(model).epsilon(1e-12));

  SECTION("full recomputation runs each block's forward again: 96 B L s h² (1 + s/6h + v/16hL)") {
    const Flops blocks = graph.forward_flops() - graph.layers.back().forward_flops();
    const double full = 96 * b * l * s * h * h * (1 + s / (6 * h) + v / (16 * h * l));
    CHECK((step + blocks).value() == Approx(full).epsilon(1e-12));
  }
  SECTION("eight tensor-parallel ranks divide it") {
    w.tensor_parallel = 8;
    const LayerGraph part = build_graph(w);
    CHECK((part.forward_flops() + part.backward_flops()).value() ==
          Approx(model / 8).epsilon(1e-12));
  }
  SECTION("causal flash attention runs half forward, 2.5 times that backward") {
    w.kernels.flash_attention = true;
    const LayerGraph flash = build_graph(w);
    const double scores = 4 * b * l * s * s * h;  // two GEMMs forward
    CHECK((graph.forward_flops() - flash.forward_flops()).value() == Approx(scores / 2));
    CHECK((graph.backward_flops() - flash.backward_flops()).value() ==
          Approx(2 * scores - 2.5 * scores / 2));
  }
}

TEST_CASE("a sliding window limits the keys of flash attention", "[flops]") {
  // 8 queries, window 4: 1 + 2 + 3 + 4·5 = 26 of 64 pairs, 3.25 keys each; whole keys: 3.
  Workload w = gpt(1, 64, 1);
  w.sequence = 8;
  w.kernels = {};
  w.network.sliding_window = 4;
  const auto core = build_graph(w).layers.at(1).core_kernels();
  CHECK(std::get<Attention>(core.at(0)).keys == 4 - 4 * 3 / 16);
}

TEST_CASE("experts run as many rows as tokens are routed", "[flops]") {
  // 16 tokens, 2 of 4 experts each: 8 rows per expert; h 64, ffn 256, no gate.
  Workload w = gpt(1, 64, 1);
  w.sequence = 16;
  const double dense = build_graph(w).forward_flops().value();
  w.network.experts = 4;
  w.network.experts_per_token = 2;
  const double ffn = 2.0 * 16 * 64 * 256 * 2, router = 2.0 * 16 * 64 * 4;
  CHECK(build_graph(w).forward_flops().value() == dense + ffn + router);
}

TEST_CASE("backward runs the last operator first and twice the GEMM FLOPs", "[flops]") {
  const Layer block = build_graph(gpt(1, 64, 1)).layers.at(1);
  CHECK(block.backward_flops().value() == 2 * block.forward_flops().value());
  CHECK(std::holds_alternative<Elementwise>(block.backward_kernels().front()));
}

TEST_CASE("tensor parallelism exchanges the stream twice forward and twice backward", "[flops]") {
  Workload w = gpt(1, 64, 4);
  w.tensor_parallel = 4;
  const auto count = [&w](CollectiveKind kind) {
    const Layer block = build_graph(w).layers.at(1);
    std::pair<int, int> found;
    for (const Operator& op : block.operators) {
      for (const Collective& c : op.forward_collectives) found.first += c.kind == kind ? 1 : 0;
      for (const Collective& c : op.backward_collectives) found.second += c.kind == kind ? 1 : 0;
      for (const Collective& c : op.beside_backward) found.second += c.kind == kind ? 1 : 0;
    }
    return found;
  };
  CHECK(count(CollectiveKind::all_reduce) == std::pair(2, 2));
  w.sequence_parallel = true;  // backward gathers the gradient, and the kept shard once more
  CHECK(count(CollectiveKind::all_reduce) == std::pair(0, 0));
  CHECK(count(CollectiveKind::all_gather) == std::pair(2, 4));
  CHECK(count(CollectiveKind::reduce_scatter) == std::pair(2, 2));
}

TEST_CASE("a fused residual sum saves one pass over the dropout's output", "[flops]") {
  Workload w = gpt(1, 64, 1);
  w.sequence = 16;
  const auto bytes = [&w](std::vector<Kernel> Operator::* pass) {
    double sum = 0;
    const Layer block = build_graph(w).layers.at(1);
    for (const Operator& op : block.operators) {
      if (op.name != "ffn_residual") continue;
      for (const Kernel& k : op.*pass) sum += std::get<Elementwise>(k).bytes.value();
    }
    return sum / (16 * 64);
  };
  // Of each 2-byte element: dropout 2 + 2 + 1, sum 2 + 2 + 2; together 2 + 2 + 2 + 1.
  CHECK(bytes(&Operator::forward) == 11);
  CHECK(bytes(&Operator::backward) == 11);
  const Bytes saved = build_graph(w).saved();
  w.kernels.fused_residual = true;
  CHECK(bytes(&Operator::forward) == 7);
  CHECK(bytes(&Operator::backward) == 11);
  CHECK(build_graph(w).saved() == saved);
  w.kernels.hidden_dropout = 0;  // no mask, nothing to fuse
  CHECK(bytes(&Operator::forward) == 6);
}
