#include <map>

#include "sim/engine/simulate.hpp"
#include "sim/graph/workload.hpp"
#include "sim/policy/build_plan.hpp"
#include "tests/catch.hpp"
#include "tests/models/toy.hpp"
#include "tests/sim/policy/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;
using toy::block;
using toy::Question;
using toy::Run;

namespace {

// Decoder of three blocks, everything divisible by four.
Workload decoder(std::int64_t tensor, bool is_sequence_parallel = false) {
  Workload w;
  w.network = {.layers = 3,
               .hidden = 256,
               .ffn = 1024,
               .heads = 8,
               .kv_heads = 8,
               .head_dim = 32,
               .vocabulary = 1024};
  w.sequence = 128;
  w.tensor_parallel = tensor;
  w.sequence_parallel = is_sequence_parallel;
  return w;
}

// Collectives of the tensor-parallel groups in the blocks, by name, of an iteration.
std::map<std::string, int> counted(const Run& run, const LayerGraph& graph, Phase phase) {
  std::map<std::string, int> counts;
  for (std::uint32_t t = 0; t < run.plan.size(); ++t) {
    const Task& task = run.plan.tasks[t];
    if (!run.lane(TaskId{t}).starts_with("tensor") || task.phase != phase) continue;
    const Layer& layer = graph.layers[static_cast<std::size_t>(task.item)];
    if (layer.kind == LayerKind::block) ++counts[run.name(TaskId{t})];
  }
  return counts;
}

Flops flops_of(const Run& run, int rank) {
  Flops sum;
  for (std::uint32_t t = 0; t < run.plan.size(); ++t) {
    const auto* compute = std::get_if<Compute>(&run.plan.work(TaskId{t}));
    if (compute == nullptr || compute->gpu != rank) continue;
    for (const Kernel& k : compute->kernels) sum += tidegate::flops_of(k);
  }
  return sum;
}

}  // namespace

TEST_CASE("each of t ranks computes a t-th", "[tensor]") {
  const auto of = [](std::int64_t t) {
    return toy::run(
        {.graph = build_graph(decoder(t)), .machine = toy::node(4), .parallel = {.tensor = t}});
  };
  const double whole = flops_of(of(1), 0).value();
  // Matrix products and attention are divided; nothing else has FLOPs.
  CHECK(flops_of(of(2), 1).value() == Approx(whole / 2));
  CHECK(flops_of(of(4), 3).value() == Approx(whole / 4));
}

TEST_CASE("a block has two all-reduces forward and two backward", "[tensor]") {
  // Megatron-LM's f and g behind attention and MLP (Shoeybi et al. 2019, arXiv 1909.08053, section
  // 3), in each of two groups of two ranks, of three blocks.
  const LayerGraph graph = build_graph(decoder(2));
  Question q{.graph = graph, .machine = toy::node(4), .parallel = {.tensor = 2}};
  using Counts = std::map<std::string, int>;
  SECTION("kept") {
    const Run run = toy::run(q);
    CHECK(counted(run, graph, Phase::forward) == Counts{{"all-reduce", 2 * 3 * 2}});
    CHECK(counted(run, graph, Phase::backward) == Counts{{"all-reduce", 2 * 3 * 2}});
  }
  SECTION("full recomputation repeats those of forward") {
    q.policy = "{activations: {name: recompute, mode: full}}";
    CHECK(counted(toy::run(q), graph, Phase::backward) == Counts{{"all-reduce", 4 * 3 * 2}});
  }
  SECTION("recomputing the attention core needs none") {
    q.policy = "{activations: {name: recompute, mode: selective}}";
    CHECK(counted(toy::run(q), graph, Phase::backward) == Counts{{"all-reduce", 2 * 3 * 2}});
  }
  SECTION("every micro-batch has its own") {
    q.accumulation = 3;
    CHECK(counted(toy::run(q), graph, Phase::forward) == Counts{{"all-reduce", 3 * 2 * 3 * 2}});
  }
  SECTION("one rank of a folded group issues them for all") {
    q.is_folded = true;
    CHECK(counted(toy::run(q), graph, Phase::forward) == Counts{{"all-reduce", 2 * 3 * 2}});
  }
}

TEST_CASE("with sequence parallelism they are gathers and scatters", "[tensor]") {
  // Korthikanti et al. 2022, section 4.2.2: forward an all-gather before and a reduce-scatter
  // behind attention and MLP; backward the reverse, and the gathered input is gathered once more
  // for the weight gradient, since only its shard was kept. One group, three blocks.
  const LayerGraph graph = build_graph(decoder(2, true));
  const Run run = toy::run({.graph = graph, .machine = toy::node(2), .parallel = {.tensor = 2}});
  using Counts = std::map<std::string, int>;
  CHECK(counted(run, graph, Phase::forward) == Counts{{"all-gather", 6}, {"reduce-scatter", 6}});
  CHECK(counted(run, graph, Phase::backward) == Counts{{"all-gather", 12}, {"reduce-scatter", 6}});
}

TEST_CASE("the ranks of a group wait for the slower one at every collective", "[tensor]") {
  // GPU 1 has half the speed: operators of 1 s take it 2 s. An all-reduce of no bytes follows each.
  LayerGraph graph = toy::graph({block("a", {{"first"}, {"second"}})});
  for (Operator& op : graph.layers[0].operators) {
    op.forward_collectives = {{CollectiveKind::all_reduce, Bytes(0), 2}};
    op.backward_collectives = op.forward_collectives;
  }
  const Machine machine = toy::node(2, 1, [](Gpu& gpu, int i) {
    if (i == 1) gpu.peak_16 = 0.5_TFLOPs;
  });
  const Run run = toy::run({.graph = graph, .machine = machine, .parallel = {.tensor = 2}});
  const auto fast = run.ran("forward", 0), slow = run.ran("forward", 1);
  REQUIRE(fast.size() == 2);
  CHECK(run.end(fast[0]) == Approx(1));
  CHECK(run.end(slow[0]) == Approx(2));
  CHECK(run.start(fast[1]) == Approx(2));
  CHECK(run.start(slow[1]) == Approx(2));
  CHECK(run.start(run.ran("backward", 0)[1]) == Approx(6));
  // Four operators of 2 s.
  CHECK(run.makespan() == Approx(8));
}

TEST_CASE("a weight gradient's gather runs beside the kernels before it is needed", "[tensor]") {
  // The kept shard of "first" is gathered (40 GB, half of it through 20 GB/s: 1 s) while its own
  // backward of 3 s runs; what follows waits for both.
  LayerGraph graph = toy::graph({block("a", {{"first", 1, 3}})});
  graph.layers[0].operators[0].beside_backward = {{CollectiveKind::all_gather, 40_GB, 2}};
  const Run run = toy::run({.graph = graph, .machine = toy::node(2), .parallel = {.tensor = 2}});
  const TaskId gather = run.ran("all-gather").at(0);
  CHECK(run.start(gather) == Approx(1));
  CHECK(run.end(gather) == Approx(2));
  CHECK(run.start(run.ran("backward", 0).at(0)) == Approx(1));
  CHECK(run.makespan() == Approx(4));
}

TEST_CASE("a folded group has the timeline of the whole one", "[tensor]") {
  for (const std::int64_t t : {2, 4}) {
    for (const std::int64_t p : {1, 2}) {
      for (const bool is_sequence_parallel : {false, true}) {
        for (const char* policy :
             {"{}", "{zero: {stage: 1}}", "{activations: {name: recompute, mode: full}}",
              "{zero: {stage: 1}, activations: {name: recompute, mode: selective}}"}) {
          INFO("t " << t << " p " << p << " sp " << is_sequence_parallel << " " << policy);
          Question q{.graph = build_graph(decoder(t, is_sequence_parallel)),
                     .machine = toy::node(8),
                     .policy = policy,
                     .parallel = {.tensor = t, .pipeline = p},
                     .accumulation = 2,
                     .iterations = 2};
          const Run whole = toy::run(q);
          q.is_folded = true;
          const Run folded = toy::run(q);
          CHECK(folded.timeline.makespan == whole.timeline.makespan);
          CHECK(folded.peak("gpu0") == whole.peak("gpu0"));
        }
      }
    }
  }
}

TEST_CASE("ZeRO 3 gathers a tensor-parallel rank's parameters among its data-parallel peers",
          "[tensor]") {
  // Four GPUs, t 2: peers {0, 2} and {1, 3}, each pair gathers 2 GB of the same layer by itself.
  LayerGraph graph = toy::graph({block("a", {{"first"}})});
  graph.layers[0].operators[0].parameters.push_back({"weight", 1'000'000'000});
  const Run run = toy::run({.graph = graph,
                            .machine = toy::node(4),
                            .policy = "{zero: {stage: 3}}",
                            .parallel = {.tensor = 2}});
  const auto gathers = run.ran("gather parameters");
  REQUIRE(gathers.size() >= 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& c = std::get<Collective>(run.plan.work(gathers[i]));
    CHECK(c.first_gpu == i);
    CHECK(c.stride == 2);
    CHECK(c.ranks == 2);
    CHECK(c.bytes == 2_GB);
  }
}
