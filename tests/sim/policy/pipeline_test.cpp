// Pipelines on a machine without communication cost: the bubbles and the memory of the schedules in
// closed form (Narayanan et al. 2021, arXiv 2104.04473, section 2.2; Korthikanti et al. 2022, arXiv
// 2205.05198, section 4.2.3).
#include "tests/catch.hpp"
#include "tests/models/toy.hpp"
#include "tests/sim/policy/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;
using toy::block;
using toy::Question;
using toy::Run;

namespace {

// `layers` equal blocks: 1 s forward, 2 s backward, 1 GB kept.
LayerGraph equal_blocks(int layers, Bytes input = {}) {
  std::vector<Layer> list;
  for (int l = 0; l < layers; ++l) {
    const std::string name = "block" + std::to_string(l);
    list.push_back(block({name, 1, 2, {toy::saved(1_GB)}}));
    list.back().input = input;
  }
  return toy::graph(std::move(list));
}

Run pipeline(int stages, int chunks, int micro_batches, int layers_per_piece = 1) {
  return toy::run({.graph = equal_blocks(stages * chunks * layers_per_piece),
                   .machine = toy::node(stages),
                   .parallel = {.pipeline = stages, .chunks = chunks},
                   .accumulation = micro_batches});
}

double kept(const Run& run, int rank) {
  return run.peak("gpu" + std::to_string(rank), "activations") / 1e9;
}

}  // namespace

TEST_CASE("1F1B takes m + p - 1 times what a micro-batch takes on a stage", "[pipeline]") {
  for (const int p : {2, 4, 8}) {
    for (const int m : {1, 2, 4, 9}) {
      INFO("p " << p << " m " << m);
      // One block a stage: t_f + t_b = 1 + 2 s.
      CHECK(pipeline(p, 1, m).makespan() == Approx((m + p - 1) * 3));
    }
  }
  // Two blocks a stage: 6 s; m 8, p 4: 11 · 6 s.
  CHECK(pipeline(4, 1, 8, 2).makespan() == Approx(66));
}

TEST_CASE("interleaving divides the bubble by the chunks", "[pipeline]") {
  for (const auto& [p, c, m] : {std::array{2, 2, 4}, {4, 2, 4}, {4, 2, 8}, {4, 3, 8}, {8, 2, 16}}) {
    INFO("p " << p << " c " << c << " m " << m);
    // c blocks of 1 + 2 s a stage: m + (p - 1) / c times 3 c s.
    CHECK(pipeline(p, c, m).makespan() == Approx(3 * (m * c + p - 1)));
    // The same network without interleaving: its bubble is (p - 1) · 3 c s.
    CHECK(pipeline(p, 1, m, c).makespan() == Approx(3 * c * (m + p - 1)));
  }
}

TEST_CASE("stage s of 1F1B keeps p - s micro-batches", "[pipeline]") {
  const Run run = pipeline(4, 1, 8, 2);
  // Two blocks a stage, 1 GB each: 4, 3, 2, 1 micro-batches.
  CHECK(kept(run, 0) == 8);
  CHECK(kept(run, 1) == 6);
  CHECK(kept(run, 2) == 4);
  CHECK(kept(run, 3) == 2);
}

TEST_CASE("few micro-batches are kept all", "[pipeline]") {
  const Run run = pipeline(4, 1, 2, 2);
  CHECK(kept(run, 0) == 4);
  CHECK(kept(run, 2) == 4);
  CHECK(kept(run, 3) == 2);
}

TEST_CASE("interleaving keeps 1 + (p - 1) / (p c) as much on the first stage", "[pipeline]") {
  for (const auto& [p, c] : {std::array{2, 2}, {4, 2}, {4, 3}}) {
    INFO("p " << p << " c " << c);
    // L = p c blocks of 1 GB: L (1 + (p - 1) / (p c)) = p c + p - 1.
    CHECK(kept(pipeline(p, c, 3 * p), 0) == p * c + p - 1);
    // Not interleaved: L, whatever the number of stages.
    CHECK(kept(pipeline(p, 1, 3 * p, c), 0) == p * c);
    // The last stage: 2 · 0 + (c - 1) p + 1 chunks of one block.
    CHECK(kept(pipeline(p, c, 3 * p), p - 1) == (c - 1) * p + 1);
  }
}

TEST_CASE("a stage waits for what its neighbour sends", "[pipeline]") {
  // Two stages, one micro-batch, 20 GB over 20 GB/s between them: 1 s each way.
  const Run run = toy::run(
      {.graph = equal_blocks(2, 20_GB), .machine = toy::node(2), .parallel = {.pipeline = 2}});
  // forward 0-1, send 1-2, forward 2-3, backward 3-5, send 5-6, backward 6-8.
  const TaskId second = run.ran("forward", 1).at(0), last = run.ran("backward", 0).at(0);
  CHECK(run.start(second) == Approx(2));
  CHECK(run.start(last) == Approx(6));
  CHECK(run.makespan() == Approx(8));
  CHECK(run.copied_bytes(Tier::gpu, Tier::gpu) == 40e9);
}

TEST_CASE("between nodes a stage sends over the network", "[pipeline]") {
  // The toy network has 10 GB/s a node, of which each of its two GPUs' adapters has half: 20 GB
  // take 4 s. Two nodes of two GPUs and two stages: data parallelism of two, one stage a node.
  const Run run = toy::run(
      {.graph = equal_blocks(2, 20_GB), .machine = toy::node(2, 2), .parallel = {.pipeline = 2}});
  CHECK(run.machine.nodes_here() == 2);
  CHECK(run.start(run.ran("forward", 2).at(0)) == Approx(5));
}

TEST_CASE("tensor-parallel ranks send a part each, and the receivers gather", "[pipeline]") {
  // p 2, t 2. Each rank sends 10 of 20 GB in 0.5 s; the all-gather passes half of 20 GB at 20 GB/s
  // in 0.5 s more.
  Question q{.graph = equal_blocks(2, 20_GB),
             .machine = toy::node(4),
             .parallel = {.tensor = 2, .pipeline = 2}};
  for (const bool is_folded : {false, true}) {
    INFO("folded " << is_folded);
    q.is_folded = is_folded;
    q.graph.is_sequence_parallel = false;
    const Run run = toy::run(q);
    const int second = is_folded ? 1 : 2;
    CHECK(run.end(run.ran("send activations", 0).at(0)) == Approx(1.5));
    CHECK(run.start(run.ran("forward", second).at(0)) == Approx(2));
    // Forward and backward, one group each.
    CHECK(run.ran("gather received").size() == 2);
    // 1 + 1 + 1 + 2 + 1 + 2.
    CHECK(run.makespan() == Approx(8));
    // With sequence parallelism a rank has a part (here of 20 GB) and needs no more.
    q.graph.is_sequence_parallel = true;
    const Run sharded = toy::run(q);
    CHECK(sharded.ran("gather received").empty());
    CHECK(sharded.start(sharded.ran("forward", second).at(0)) == Approx(2));
  }
}

TEST_CASE("one stage is no pipeline", "[pipeline]") {
  const Run run = pipeline(1, 1, 3, 2);
  // Three micro-batches of two blocks.
  CHECK(run.makespan() == Approx(18));
  CHECK(kept(run, 0) == 2);
  CHECK(run.ran("send activations").empty());
}

TEST_CASE("gradients of a stage are reduced among its own ranks", "[pipeline]") {
  // Four GPUs, p 2: data groups {0, 1} and {2, 3}. A block has 1e9 parameters, 2 GB; the bucket
  // holds all of them. Once an iteration, at the boundary, whatever the micro-batches.
  Question q{.graph = equal_blocks(2),
             .machine = toy::node(4),
             .policy = "{zero: {stage: 0, reduce_bucket_size: 1e9}}",
             .parallel = {.pipeline = 2},
             .accumulation = 4};
  for (Layer& layer : q.graph.layers) {
    layer.operators[0].parameters.push_back({"weight", 1'000'000'000});
  }
  const Run run = toy::run(q);
  const auto reductions = run.ran("reduce bucket");
  REQUIRE(reductions.size() == 2);
  // The last stage has its gradients first. Its task comes first in the plan, too.
  const auto& last = std::get<Collective>(run.plan.work(reductions[0]));
  const auto& first = std::get<Collective>(run.plan.work(reductions[1]));
  CHECK(last.first_gpu == 2);
  CHECK(first.first_gpu == 0);
  for (const Collective& c : {last, first}) {
    CHECK(c.gpus == 2);
    CHECK(c.ranks == 2);
    CHECK(c.bytes == 2_GB);
  }
}
