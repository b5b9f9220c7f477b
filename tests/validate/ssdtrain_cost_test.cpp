#include "validate/ssdtrain_cost.hpp"

#include <string>

#include "tests/catch.hpp"

using namespace tidegate;

/// The expectations were obtained by running the authors' published cost model, K-Wu/llm-analysis
/// at 44495f6, on the commands of its examples (activation_size_estimate, scale_up_estimate,
/// megatron-lm without recomputation).
namespace {

constexpr double GiB = 1073741824.0;

// A100 PCIe 80 GB of the model's GPU files: 1935 GB/s, 300 GB/s within a node, 400 GB/s beyond.
SsdTrainRun bert(std::int64_t hidden, std::int64_t layers, std::int64_t ranks,
                 std::int64_t stages) {
  return {.layers = layers * stages,
          .hidden = hidden,
          .heads = hidden / 128,
          .vocabulary = 32000,
          .sequence = 1024,
          .tensor_parallel = ranks,
          .stages = stages,
          .micro_batch = 16 * stages,
          .rate = FlopsPerSecond(153e12),
          .memory = Bytes(80 * GiB),
          .memory_bandwidth = BytesPerSecond(1935e9),
          .links = BytesPerSecond(300e9),
          .network = BytesPerSecond(400e9)};
}

struct LargeScale {
  const char* network;
  std::int64_t gpus;
  bool is_zero3;
  double teraflops;
  std::int64_t batch, micro_batch, accumulation;
  double step, forward, activations_gb, write_gib, years;
};
// Sequence 2048, A100 SXM 80 GB: 2039 GB/s, 300 GB/s within a node, 200 GB/s beyond. Tensor
// parallel 8 and 12 or 35 stages, or ZeRO-3 on all GPUs.
constexpr LargeScale large_scale[] = {
    {"175B", 384, false, 153, 1536, 192, 2, 63.516, 10.583, 398.2, 11.682, 3.544},
    {"175B", 768, false, 149, 1536, 192, 1, 32.540, 10.841, 199.1, 11.404, 3.631},
    {"175B", 1536, false, 141, 1536, 96, 1, 17.119, 5.701, 99.6, 10.844, 3.821},
    {"530B", 560, false, 171, 2240, 112, 10, 166.499, 5.549, 725.0, 8.111, 5.104},
    {"530B", 1120, false, 167, 2240, 112, 5, 85.111, 5.673, 362.5, 7.935, 5.218},
    {"530B", 2240, false, 159, 2240, 70, 4, 44.562, 3.712, 181.2, 7.579, 5.464},
    {"175B", 384, true, 144, 6144, 16, 1, 245.396, 81.797, 1593.0, 12.091, 3.423},
    {"175B", 768, true, 88, 13824, 18, 1, 451.419, 150.472, 1792.1, 7.395, 5.598},
    {"175B", 1536, true, 44, 29184, 19, 1, 952.450, 317.483, 1891.7, 3.699, 11.189},
    {"530B", 640, true, 138, 5120, 8, 1, 383.896, 127.963, 1449.9, 7.035, 5.884},
    {"530B", 1120, true, 98, 11200, 10, 1, 675.513, 225.170, 1812.4, 4.998, 8.282},
    {"530B", 2240, true, 48, 24640, 11, 1, 1516.484, 505.494, 1993.7, 2.449, 16.903},
};

SsdTrainRun run_of(const LargeScale& row) {
  const bool is_175b = std::string(row.network) == "175B";
  const std::int64_t ranks = row.is_zero3 ? 1 : 8;
  const std::int64_t stages = row.is_zero3 ? 1 : is_175b ? 12 : 35;
  return {.layers = is_175b ? 96 : 105,
          .hidden = is_175b ? 12288 : 20480,
          .heads = is_175b ? 96 : 128,
          .vocabulary = 50272,
          .sequence = 2048,
          .tensor_parallel = ranks,
          .stages = stages,
          .data_parallel = row.gpus / (ranks * stages),
          .is_zero3 = row.is_zero3,
          .micro_batch = row.micro_batch,
          .accumulation = row.accumulation,
          .rate = FlopsPerSecond(row.teraflops * 1e12),
          .memory = Bytes(80 * GiB),
          .memory_bandwidth = BytesPerSecond(2039e9),
          .links = BytesPerSecond(300e9),
          .network = BytesPerSecond(200e9)};
}

// What the last printed digit can hide, for a value printed with this many decimals.
double half_digit(int decimals) { return 0.5000001 * std::pow(10, -decimals); }

}  // namespace

TEST_CASE("the estimates of the three BERT shapes are exact", "[cost]") {
  // H8192 L4, s·b·h/t = 2^26: 4·(41·2^26 + 8·64·2^14/2) + 2·2^26 + 2·2^14·32000/2 + 4·2^26 bytes
  CHECK(micro_batch_activations(bert(8192, 4, 2, 1)).value() ==
        4 * (41 * 67108864.0 + 4194304.0) + 6 * 67108864.0 + 16384.0 * 32000);
  CHECK(micro_batch_activations(bert(8192, 4, 2, 1)).value() == 11.12890625 * GiB);
  CHECK(micro_batch_activations(bert(12288, 3, 2, 1)).value() == 12.599609375 * GiB);
  CHECK(micro_batch_activations(bert(16384, 2, 2, 1)).value() == 11.50390625 * GiB);
}

TEST_CASE("the runs on two GPUs meet the published model to its last digit", "[cost]") {
  struct Row {
    std::int64_t hidden, layers;
    double step, forward, write;
  };
  for (const Row& row : {Row{8192, 4, 1.1851, 0.38964, 19.042},
                         {12288, 3, 1.9571, 0.64334, 13.057},
                         {16384, 2, 2.3239, 0.76382, 10.041}}) {
    INFO("hidden " << row.hidden);
    const SsdTrainRun run = bert(row.hidden, row.layers, 2, 1);
    CHECK(step_time(run).value() == Approx(row.step).margin(half_digit(4)));
    CHECK(forward_time(run).value() == Approx(row.forward).margin(half_digit(5)));
    CHECK(write_bandwidth(run).value() / GiB == Approx(row.write).margin(half_digit(3)));
    CHECK(largest_micro_batch(run, 16) == 16);
  }
}

TEST_CASE("the need falls with tensor and pipeline parallelism as published", "[cost]") {
  struct Row {
    std::int64_t ranks, stages;
    double h8192, h12288, h16384;
  };
  for (const Row& row : {Row{2, 1, 19.04, 13.06, 10.04},
                         {4, 1, 18.27, 12.68, 9.80},
                         {8, 1, 16.91, 11.98, 9.36},
                         {8, 2, 16.81, 11.85, 9.19},
                         {8, 4, 16.76, 11.79, 9.09},
                         {8, 8, 16.73, 11.75, 9.04}}) {
    INFO("tensor parallel " << row.ranks << ", stages " << row.stages);
    const auto need = [&row](std::int64_t hidden, std::int64_t layers) {
      return write_bandwidth(bert(hidden, layers, row.ranks, row.stages)).value() / GiB;
    };
    CHECK(need(8192, 4) == Approx(row.h8192).margin(half_digit(2)));
    CHECK(need(12288, 3) == Approx(row.h12288).margin(half_digit(2)));
    CHECK(need(16384, 2) == Approx(row.h16384).margin(half_digit(2)));
  }
}

TEST_CASE("the large-scale projections meet the published model to its last digit", "[cost]") {
  for (const LargeScale& row : large_scale) {
    INFO(row.network << " on " << row.gpus << (row.is_zero3 ? ", ZeRO-3" : ""));
    const SsdTrainRun run = run_of(row);
    CHECK(run.data_parallel * row.micro_batch * row.accumulation == row.batch);
    CHECK(largest_micro_batch(run, row.batch / run.data_parallel) == row.micro_batch);
    CHECK(step_time(run).value() == Approx(row.step).margin(half_digit(3)));
    CHECK(forward_time(run).value() == Approx(row.forward).margin(half_digit(3)));
    CHECK(step_activations(run).value() / 1e9 == Approx(row.activations_gb).margin(half_digit(1)));
    CHECK(write_bandwidth(run).value() / GiB == Approx(row.write_gib).margin(half_digit(3)));
    CHECK(lifetime_years(run, {}) == Approx(row.years).margin(half_digit(3)));
  }
}

TEST_CASE("four drives may take 700.8 PB of activations", "[cost]") {
  // 4 · 12.8 TB · 3 a day · 365 · 5 years = 280.32 PB as rated; amplified 1.0 instead of 2.5
  CHECK(endurance({}).value() == Approx(700.8e15).epsilon(1e-12));
  CHECK(endurance({.write_amplification = 2.5}).value() == Approx(280.32e15).epsilon(1e-12));
}

TEST_CASE("a part takes the longer of computing and moving", "[cost]") {
  // One head, h = s = 2, b = 1, t = 1: attention 8·2·4 + 4·2·2·2 = 96 FLOP; weights 2·4·4 = 32 B,
  // activations 15·4 + 8·2 = 76 B; feed-forward 16·2·4 = 128 FLOP, 64 + 18·4 = 136 B; norms
  // 2·4·4 = 32 B; embedding 2·10·2 = 40 B; head 2·2·2·10 = 80 FLOP.
  SsdTrainRun run{.layers = 1, .hidden = 2, .heads = 1, .vocabulary = 10, .sequence = 2};
  run.rate = FlopsPerSecond(1);
  run.memory_bandwidth = run.links = run.network = BytesPerSecond(1);
  const SsdTrainForward parts = forward_parts(run);
  CHECK(parts.attention == Seconds(108));
  CHECK(parts.feed_forward == Seconds(136));
  CHECK(parts.norms == Seconds(32));
  CHECK(parts.embedding == Seconds(40));
  CHECK(parts.head == Seconds(80));
  CHECK(forward_time(run) == Seconds(108 + 136 + 32 + 40 + 80));
  run.memory_bandwidth = BytesPerSecond(1e9);
  CHECK(forward_parts(run).attention == Seconds(96));
  CHECK(forward_parts(run).feed_forward == Seconds(128));
  SECTION("two ranks add their streams in two rings of 2 · 2·4 / 2 bytes") {
    run.tensor_parallel = 2;
    CHECK(forward_parts(run).reductions == Seconds(2 * 8));
    run.links = BytesPerSecond(1e12);
    CHECK(forward_parts(run).reductions == Seconds(2 * 8e-6));
  }
  SECTION("a gather hides behind a layer, or hides it") {
    // 12·4 + 2·2 = 52 parameters, 104 B, of which each of 4 ranks lacks 3/4
    run.data_parallel = 4;
    CHECK(forward_parts(run).gather == Seconds(0));
    run.is_zero3 = true;
    CHECK(forward_parts(run).gather == Seconds(78));
    CHECK(forward_parts(run).layer().value() == Approx(96 + 128));
    run.links = BytesPerSecond(0.1);
    CHECK(forward_parts(run).layer().value() == Approx(780));
    run.data_parallel = 16;  // beyond a node: 104 · 15/16 over the network
    CHECK(forward_parts(run).gather == Seconds(97.5));
    // 18 B of 52 + 20 + 2 parameters
    CHECK(model_states(run).value() == Approx(18.0 * 74 / 16));
  }
}

TEST_CASE("a micro-batch is a divisor of the batch that fits twice a layer", "[cost]") {
  SsdTrainRun run{.layers = 1, .hidden = 2, .heads = 1, .vocabulary = 10, .sequence = 2};
  // states 18·74 = 1332 B; a layer 41·4 + 16 = 180 B
  run.memory = Bytes(1332 + 5 * 360);
  CHECK(largest_micro_batch(run, 12) == 4);
  CHECK(largest_micro_batch(run, 5) == 5);
  CHECK(largest_micro_batch(run, 7) == 1);
  run.memory = Bytes(1332);  // nothing fits; the model goes on with one sequence
  CHECK(largest_micro_batch(run, 12) == 1);
}
