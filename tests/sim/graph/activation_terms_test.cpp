#include <map>
#include <set>
#include <string>

#include "tests/catch.hpp"
#include "tests/sim/graph/networks.hpp"

using namespace tidegate;

/// Activation memory and FLOPs of Korthikanti, Casper, Lym, McAfee, Andersch, Shoeybi, Catanzaro
/// 2022 (arXiv 2205.05198), term by term: tensors of a block (section 4.1), first stage (section
/// 4.3), FLOPs and utilisation (appendix A, table 5).
namespace {

constexpr double GiB = 1073741824.0;

struct Published {
  const char* name;
  std::int64_t hidden, heads, layers, batch, gpus;
  double selective_s, full_s;  // table 5: seconds of an iteration
  double mfu, hfu;  // percent, from the published formulas and selective_s at 312 TFLOP/s
};
// Sequence 2048, vocabulary 51200. Table 5 prints 41.5 and 43.7 for 22B: its times have two digits
// behind the point.
constexpr Published published[] = {
    {"22B", 6144, 64, 48, 4, 8, 1.10, 1.42, 41.7, 43.8},
    {"175B", 12288, 96, 96, 64, 64, 13.75, 18.13, 51.4, 52.8},
    {"530B", 20480, 128, 105, 280, 280, 37.83, 49.05, 56.0, 57.0},
    {"1T", 25600, 160, 128, 512, 512, 71.49, 94.42, 56.3, 57.0},
};

// The FLOPs of a global batch, which needs no more than one sequence's graph.
struct StepFlops {
  explicit StepFlops(const Published& p) {
    const LayerGraph graph = build_graph(gpt(p.layers, p.hidden, p.heads));
    const auto batch = static_cast<double>(p.batch);
    model = batch * (graph.forward_flops() + graph.backward_flops()).value();
    for (const Layer& layer : graph.layers) {
      for (const Kernel& kernel : layer.core_kernels()) core += batch * flops_of(kernel).value();
      if (layer.kind == LayerKind::block) blocks += batch * layer.forward_flops().value();
    }
  }
  double model = 0, core = 0, blocks = 0;  // forward and backward; forward of parts
};

double percent(const Published& p, double flops, double seconds) {
  return 100 * flops / (seconds * static_cast<double>(p.gpus) * 312e12);
}

std::map<std::string, double> saved_by_name(const Layer& layer, double unit) {
  std::map<std::string, double> saved;
  std::set<std::int32_t> storages;  // q, k and v are saved by two operators
  for (const Operator& op : layer.operators) {
    for (const SavedTensor& t : op.saved) {
      if (!storages.insert(t.identity).second) continue;
      const std::string name = t.name == "dropout_mask" ? op.name + " mask" : t.name;
      REQUIRE(!saved.contains(name));
      saved[name] = t.bytes.value() / unit;
    }
  }
  return saved;
}

}  // namespace

TEST_CASE("every tensor of a block has its published size", "[memory]") {
  const double s = 2048, b = 2, h = 1024, a = 16;
  Workload w = gpt(1, 1024, 16);
  w.micro_batch = 2;
  for (const auto& [t, is_sharded] :
       {std::pair(1.0, false), {2.0, false}, {8.0, false}, {2.0, true}, {8.0, true}}) {
    INFO("t " << t << (is_sharded ? " and sequence parallel" : ""));
    w.tensor_parallel = static_cast<std::int64_t>(t);
    w.sequence_parallel = is_sharded;
    // In bytes over s·b·h. Tensor parallelism leaves the stream whole on every rank; sequence
    // parallelism divides it.
    const double whole = is_sharded ? 1 / t : 1, scores = a * s / h / t;
    const std::map<std::string, double> expected = {{"attention_norm_input", 2 * whole},
                                                    {"qkv_input", 2 * whole},
                                                    {"q", 2 / t},  // with k: "qk", 4/t
                                                    {"k", 2 / t},
                                                    {"v", 2 / t},
                                                    {"softmax_output", 2 * scores},
                                                    {"softmax_dropout_mask", scores},
                                                    {"softmax_dropout_output", 2 * scores},
                                                    {"projection_input", 2 / t},
                                                    {"attention_residual mask", whole},
                                                    {"ffn_norm_input", 2 * whole},
                                                    {"ffn_input", 2 * whole},
                                                    {"activation_input", 8 / t},
                                                    {"down_input", 8 / t},
                                                    {"ffn_residual mask", whole}};
    CHECK(saved_by_name(build_graph(w).layers.at(1), s * b * h) == expected);
  }
}

TEST_CASE("what lies outside the blocks of a single stage is the published extra, and the logits",
          "[memory]") {
  // Published for one stage: mask behind the embedding s·b·h/t; last norm, projection and fp32
  // logits (4 s·b·h/t)(1 + v/h). We keep two things more: the identifiers of the tokens, 8 bytes
  // each, and the 16-bit logits, which PyTorch's output holds besides the fp32 log-softmax that
  // its loss keeps for backward. The published formula has one copy, as Megatron's loss has.
  const double s = 2048, b = 4, h = 6144, v = 51200;
  Workload w = gpt(1, 6144, 64);
  w.micro_batch = 4;
  w.sequence_parallel = true;
  for (const double t : {2.0, 8.0}) {
    INFO("t " << t);
    w.tensor_parallel = static_cast<std::int64_t>(t);
    const LayerGraph graph = build_graph(w);
    CHECK(graph.layers.front().saved().value() == s * b * h / t + 8 * s * b);
    CHECK(graph.layers.back().saved().value() ==
          4 * s * b * h / t * (1 + v / h) + 2 * s * b * v / t);
  }
}

// Hidden 8192, 12288 and 16384 with 4, 3 and 2 layers, s 1024, b 16, t 2 and no sequence
// parallelism: the runs of SSDTrain (github.com/K-Wu/FlashTrain at 668f553, driver.py). s·b·h·(10 +
// 24/2) bytes a layer; the log-sum-exps, 4 a·s·b/t, are below what it offloads.
TEST_CASE("the layer stacks of SSDTrain's runs keep 11, 12.375 and 11 GiB", "[memory]") {
  struct Shape {
    std::int64_t hidden, layers;
    double stack_gib, inputs_gib;
  };
  for (const Shape& shape : {Shape{8192, 4, 11, 1}, {12288, 3, 12.375, 1.125}, {16384, 2, 11, 1}}) {
    INFO("hidden " << shape.hidden);
    Workload w = gpt(shape.layers, shape.hidden, shape.hidden / 128);
    w.sequence = 1024;
    w.micro_batch = 16;
    w.tensor_parallel = 2;
    w.kernels.flash_attention = true;
    double stack = 0, inputs = 0;
    for (const Layer& layer : build_graph(w).layers) {
      if (layer.kind != LayerKind::block) continue;
      stack += (layer.saved() - layer.core_saved()).value();
      inputs += layer.input.value();
    }
    CHECK(stack == shape.stack_gib * GiB);
    CHECK(inputs == shape.inputs_gib * GiB);
  }
}

TEST_CASE("FLOPs of four published networks meet the formulas", "[flops][published]") {
  for (const Published& p : published) {
    INFO(p.name);
    const StepFlops flops(p);
    const double s = 2048, v = 51200;
    const auto h = static_cast<double>(p.hidden), l = static_cast<double>(p.layers);
    const double unit = static_cast<double>(p.batch) * l * s * h * h;
    CHECK(flops.model == Approx(72 * unit * (1 + s / (6 * h) + v / (12 * h * l))).epsilon(1e-12));
    CHECK(flops.model + flops.blocks ==
          Approx(96 * unit * (1 + s / (6 * h) + v / (16 * h * l))).epsilon(1e-12));
    // Selective recomputation, published: 72 B L s h² (1 + s/3h + v/12hL), 12 B L s² h more than
    // the model. Running the core's two products again is 4 B L s² h, and that is what we count;
    // the published formula counts them threefold, as if their backward ran again too.
    CHECK(flops.core == Approx(4 * unit * s / h).epsilon(1e-12));
    CHECK(flops.model + 3 * flops.core ==
          Approx(72 * unit * (1 + s / (3 * h) + v / (12 * h * l))).epsilon(1e-12));
  }
}

TEST_CASE("utilisation of four published networks follows from their times", "[flops][published]") {
  for (const Published& p : published) {
    INFO(p.name);
    const StepFlops flops(p);
    CHECK(percent(p, flops.model, p.selective_s) == Approx(p.mfu).margin(0.05));
    CHECK(percent(p, flops.model + 3 * flops.core, p.selective_s) == Approx(p.hfu).margin(0.05));
    // The same GPUs do not compute faster because they compute more: with full recomputation,
    // everything counted once, they are as busy as with selective recomputation within 4 %.
    const double full = percent(p, flops.model + flops.blocks, p.full_s);
    CHECK(full / percent(p, flops.model + flops.core, p.selective_s) == Approx(1).margin(0.04));
  }
}
