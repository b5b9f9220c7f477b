#include <string>

#include "tests/catch.hpp"
#include "tests/sim/graph/networks.hpp"

using namespace tidegate;

/// Activation memory of Korthikanti, Casper, Lym, McAfee, Andersch, Shoeybi, Catanzaro 2022,
/// "Reducing activation recomputation in large transformer models", section 4. Its published
/// figures are analytic, so they are met exactly. Biases, embeddings and the head are left out
/// there.
namespace {

constexpr double GiB = 1073741824.0;

struct Case {
  const char* name;
  std::int64_t hidden, heads, layers, micro_batch, stages, chunks;
  double none, both, parameters;  // figure 1, GiB: without, and with both; model states
  double seq_pct, sel_pct, both_pct, full_pct;  // figure 7, read off the plot
};
// Figure 1 and 7; sequence 2048, tensor parallel 8.
constexpr Case cases[] = {
    {"22B", 6144, 64, 48, 4, 1, 1, 59.25, 9.5625, 45.5625, 66.84, 49.42, 16.18, 7.64},
    {"175B", 12288, 96, 96, 1, 8, 3, 66.84375, 12.3515625, 45.5625, 62.04, 56.53, 18.49, 8.71},
    {"530B", 20480, 128, 105, 1, 35, 3, 114.0234375, 23.076171875, 31.640625, 58.31, 62.04, 20.27,
     9.42},
    {"1T", 25600, 160, 128, 1, 64, 1, 131.25, 26.5625, 32.958984375, 58.31, 62.04, 20.27, 9.42},
};

Layer block_of(const Case& c, bool is_sharded) {
  Workload w = gpt(1, c.hidden, c.heads);
  w.micro_batch = c.micro_batch;
  w.tensor_parallel = 8;
  w.sequence_parallel = is_sharded;
  return build_graph(w).layers.at(1);
}

// The first of p stages keeps p micro-batches of its L/p layers, and with m interleaved chunks
// (p-1)/m of a chunk more: per layer · L · (1 + (p-1)/(pm)), the last factor only for m > 1.
double first_stage(const Case& c, Bytes per_layer) {
  const auto p = static_cast<double>(c.stages), m = static_cast<double>(c.chunks);
  const double interleaving = c.chunks > 1 ? 1 + (p - 1) / (p * m) : 1;
  return per_layer.value() * static_cast<double>(c.layers) * interleaving / GiB;
}

Bytes without_core(const Layer& layer) { return layer.saved() - layer.core_saved(); }

}  // namespace

TEST_CASE("a GPT block saves sbh(34 + 5as/h) bytes", "[memory]") {
  Workload w = gpt(1, 1024, 16);
  w.micro_batch = 2;
  const double s = 2048, b = 2, h = 1024, a = 16;
  const auto block = [&w] { return build_graph(w).layers.at(1); };
  SECTION("on one rank") {
    CHECK(block().saved().value() == s * b * h * (34 + 5 * a * s / h));
    CHECK(without_core(block()).value() == s * b * h * 34);
    CHECK(block().input.value() == 2 * s * b * h);
  }
  for (const double t : {2.0, 4.0, 8.0}) {
    w.tensor_parallel = static_cast<std::int64_t>(t);
    DYNAMIC_SECTION("tensor parallel " << t) {
      CHECK(block().saved().value() == s * b * h * (10 + 24 / t + 5 * a * s / (h * t)));
      CHECK(without_core(block()).value() == s * b * h * (10 + 24 / t));
      CHECK(block().input.value() == 2 * s * b * h);
    }
    DYNAMIC_SECTION("tensor and sequence parallel " << t) {
      w.sequence_parallel = true;
      CHECK(block().saved().value() == s * b * h / t * (34 + 5 * a * s / h));
      CHECK(without_core(block()).value() == 34 * s * b * h / t);
      CHECK(block().input.value() == 2 * s * b * h / t);
    }
    DYNAMIC_SECTION("flash attention adds one log-sum-exp per query and head, " << t) {
      w.kernels.flash_attention = true;
      CHECK(block().saved().value() == s * b * h * (10 + 24 / t) + 4 * a * s * b / t);
      CHECK(block().core_saved().value() == 4 * a * s * b / t);
    }
  }
}

TEST_CASE("activation memory of four published networks is exact", "[memory][published]") {
  for (const Case& c : cases) {
    INFO(c.name);
    CHECK(first_stage(c, block_of(c, false).saved()) == c.none);
    CHECK(first_stage(c, without_core(block_of(c, true))) == c.both);
  }
}

// 18 bytes for each of a block's 12 h² matrix parameters; biases and norms are left out there.
TEST_CASE("model states of four published networks are exact", "[memory][published]") {
  for (const Case& c : cases) {
    INFO(c.name);
    std::int64_t matrices = 0;
    for (const Operator& op : block_of(c, false).operators) {
      for (const Parameter& p : op.parameters) matrices += p.is_small ? 0 : p.elements;
    }
    const auto layers = static_cast<double>(c.layers) / static_cast<double>(c.stages);
    CHECK(18 * static_cast<double>(matrices) * layers / GiB == Approx(c.parameters).epsilon(1e-12));
  }
}

// Points were read off a plot; the formula itself is up to 0.15 away.
TEST_CASE("shares of figure 7 are met within its reading", "[memory][published]") {
  for (const Case& c : cases) {
    INFO(c.name);
    const Layer plain = block_of(c, false), sharded = block_of(c, true);
    const double none = plain.saved().value();
    CHECK(100 * sharded.saved().value() / none == Approx(c.seq_pct).margin(0.15));
    CHECK(100 * without_core(plain).value() / none == Approx(c.sel_pct).margin(0.15));
    CHECK(100 * without_core(sharded).value() / none == Approx(c.both_pct).margin(0.15));
    CHECK(100 * plain.input.value() / none == Approx(c.full_pct).margin(0.15));
  }
}

TEST_CASE("kernel options change what a block keeps", "[memory]") {
  // Per token of width h = 64, ffn 4h, 4 heads, 16 bits, no dropout: norms 2·2, qkv input 2, q k v
  // 6, attention output 2, ffn input 2 = 16 h; activation input and output 8 + 8 h; log-sum-exp
  // 4·4.
  Workload w = gpt(1, 64, 4);
  w.sequence = 1;
  w.kernels = {};
  const auto saved = [&w] { return build_graph(w).layers.at(1).saved().value(); };
  CHECK(saved() == 64 * 32 + 16);
  SECTION("a fused activation keeps its input only") {
    w.kernels.fused_activation = true;
    CHECK(saved() == 64 * 24 + 16);
  }
  SECTION("ReLU's output is the next projection's input") {
    w.network.activation = Activation::relu;
    CHECK(saved() == 64 * 24 + 16);
  }
  SECTION("a gated feed-forward keeps gate, up, activated gate and product") {
    w.network.has_gated_ffn = true;
    CHECK(saved() == 64 * (16 + 32) + 16);
  }
  SECTION("an eager RMS norm keeps an fp32 input and the normalised value") {
    w.network.norm = NormKind::rms_norm;
    w.kernels.fused_norm = false;
    CHECK(saved() == 64 * (32 + 2 * 4) + 16);
  }
  SECTION("norms in fp32 keep four bytes") {
    w.kernels.fp32_norm = true;
    CHECK(saved() == 64 * (32 + 2 * 2) + 16);
  }
  SECTION("parallel parts share the norms' input") {
    w.network.is_parallel_residual = true;
    CHECK(saved() == 64 * 30 + 16);
  }
  SECTION("grouped keys and values are small only in a fused kernel") {
    w.network.kv_heads = 1;  // k and v of 16 instead of 64 each: 2·2·48 bytes less
    CHECK(saved() == 64 * 32 + 16 - 192);
    w.kernels.flash_attention = false;  // copied to every head; a softmax output of 2·4 bytes
    CHECK(saved() == 64 * 32 + 8);
  }
}

TEST_CASE("the head keeps its inputs and the logits, and works on two fp32 gradients", "[memory]") {
  // 8 tokens, h 64, vocabulary 51200: norm and projection inputs 2·2·64, logits 2 + 4 bytes each.
  Workload w = gpt(1, 64, 4);
  w.sequence = 8;
  const Layer head = build_graph(w).layers.back();
  CHECK(head.saved().value() == 8 * (4 * 64 + 6 * 51200));
  CHECK(head.workspace.value() == 8 * 8 * 51200);
  w.kernels.fused_cross_entropy = true;  // 800 chunks: logits of 8/800 tokens in 2 + 4 bytes
  const Layer fused = build_graph(w).layers.back();
  CHECK(fused.saved().value() == 8 * 4 * 64);
  CHECK(fused.workspace.value() == 6 * 8 * 51200 / 800);
}
