#include <filesystem>

#include "sim/policy/segment_table.hpp"
#include "sim/report/allocation.hpp"
#include "sim/report/memory.hpp"
#include "sim/report/needs.hpp"
#include "sim/report/period.hpp"
#include "sim/run/predict.hpp"
#include "tests/catch.hpp"

/// What a search leaves out or does once gives the numbers of the whole way, on every scenario.

using namespace tidegate;

namespace {

std::vector<std::string> scenarios() {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(TIDEGATE_SOURCE_DIR) + "/scenarios")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  REQUIRE(files.size() > 5);
  std::ranges::sort(files);
  return files;
}

// How many pools needed more than their capacity.
int compare_needs(const Prediction& p, const AllocatorOptions& options) {
  const auto iterations = iterations_of(p.plan, p.timeline);
  const auto histories = memory_of(p.plan, p.timeline, steady_period(iterations));
  const auto allocators = allocator_histories(p.plan, p.timeline, iterations, options);
  const auto needs = pool_needs(p.plan, p.timeline, options);
  REQUIRE(needs.size() == histories.size());
  int full = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    INFO(p.plan.pools[i].name);
    CHECK(needs[i].peak == histories[i].peak().bytes);
    CHECK(needs[i].is_over == histories[i].first_over.has_value());
    full += needs[i].fits() ? 0 : 1;
    CHECK(needs[i].reserved == (allocators[i] ? allocators[i]->run.reserved : 0));
    const bool has_failed = allocators[i] && allocators[i]->out_of_memory;
    CHECK(needs[i].refused ==
          (has_failed ? allocators[i]->out_of_memory->reserved + allocators[i]->out_of_memory->asked
                      : 0));
  }
  return full;
}

}  // namespace

TEST_CASE("the needs of pools are those of the histories", "[needs][laws]") {
  int full = 0;
  for (const std::string& file : scenarios()) {
    INFO(file);
    Scenario scenario = load_scenario(file, {});
    Prediction p = predict(scenario);
    full += compare_needs(p, scenario.allocator);
    full += compare_needs(p, {.expandable_segments = true});
    // As much memory as bytes are held at the same time is not enough once blocks are rounded.
    for (Pool& pool : p.plan.pools) {
      if (pool.place.tier != Tier::gpu) continue;
      for (std::size_t i = 0; i < p.plan.pools.size(); ++i) {
        if (&p.plan.pools[i] == &pool)
          pool.capacity = Bytes(static_cast<double>(p.timeline.pools[i].peak));
      }
    }
    full += compare_needs(p, {});
    full += compare_needs(p, {.max_split_size = 200 << 20});
  }
  CHECK(full > 10);
}

TEST_CASE("a segment's work and memory are those of its own layer", "[segments][laws]") {
  for (const std::string& file : scenarios()) {
    INFO(file);
    const LayerGraph graph = build_graph(load_scenario(file, {}).workload);
    SegmentTable table(graph, 2);
    PlanBuilder plan;
    for (std::size_t l = 0; l < graph.layers.size(); ++l) {
      const Layer& layer = graph.layers[l];
      const std::size_t last = std::max<std::size_t>(layer.operators.size(), 1) - 1;
      for (const Pass pass :
           {Pass::forward, Pass::recompute, Pass::recompute_core, Pass::backward}) {
        for (std::size_t op = 0; op <= last; ++op) {
          for (const Segment& segment : {Segment{op, op}, Segment{0, op}, Segment{op, last}}) {
            const auto kernels = kernels_of(layer, pass, segment);
            CHECK(count_kernels(layer, pass, segment) == kernels.size());
            for (std::uint16_t r = 0; r < 2; ++r)
              CHECK(table.kernels(plan, l, pass, segment, r) == plan.work(Compute{r, kernels}));
            Bytes workspace;
            std::int64_t parameters = 0;
            for (std::size_t i = segment.first; i <= segment.last; ++i) {
              workspace = std::max(workspace, transient_of(layer, pass, i));
              if (i >= layer.operators.size()) continue;
              for (const Parameter& p : layer.operators[i].parameters) parameters += p.elements;
            }
            const auto memory = table.short_lived(l, pass, segment.first, segment.last);
            CHECK(memory.workspace == workspace);
            CHECK(memory.parameters == parameters);
          }
        }
      }
    }
  }
}
