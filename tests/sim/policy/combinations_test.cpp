// Activations, optimizers, tensor and pipeline parallelism together: whatever is combined, plans
// are sound and timelines obey the laws.
#include <array>
#include <string>
#include <vector>

#include "models/base/error.hpp"
#include "sim/plan/check.hpp"
#include "sim/run/predict.hpp"
#include "sim/timeline/laws.hpp"
#include "tests/catch.hpp"

using namespace tidegate;

namespace {

const std::string scenario_file =
    std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/mlp_offload_70b.yaml";

// A decoder of eight blocks on one node of four GPUs whose drives reach GPU memory. Thresholds are
// scaled as the network is.
const std::vector<Override> small = {{"workload.network.layers", "8"},
                                     {"workload.network.hidden", "512"},
                                     {"workload.network.ffn", "2048"},
                                     {"workload.network.heads", "8"},
                                     {"workload.network.kv_heads", "4"},
                                     {"workload.sequence", "256"},
                                     {"policy.zero.reduce_bucket_size", "4000000"},
                                     {"machine.paths.nvme.gpudirect", "true"},
                                     {"iterations", "4"}};

const std::array keeping = {"keep", "{name: recompute, mode: full}",
                            "{name: recompute, mode: full, every: 3}",
                            "{name: recompute, mode: selective}"};
const std::array offloading = {
    "to: nvme, profile_iteration: 1",
    "to: nvme, gpudirect: false, profile_iteration: 1",
    "to: host, profile_iteration: 1",
    "to: nvme, profile_iteration: 1, bandwidth: 0.1 GB/s",
    "to: nvme, adaptive: false",
    "to: nvme, adaptive: false, record_first: false",
    "to: nvme, adaptive: false, forwarding: false",
    "to: nvme, adaptive: false, cancel_forwarded: true",
    "to: nvme, adaptive: false, gpudirect: false, cancel_forwarded: true",
    "to: nvme, adaptive: false, deduplicate: false",
    "to: nvme, adaptive: false, prefetch: false",
    "to: nvme, adaptive: false, prefetch_chunk: 5",
    "to: nvme, adaptive: false, keep_last_module: true",
    "to: host, adaptive: false, store_workers: 1, load_workers: 1"};

std::vector<std::string> activations() {
  std::vector<std::string> all(keeping.begin(), keeping.end());
  for (const char* keys : offloading) {
    all.push_back("{name: ssdtrain, threshold: 65536, " + std::string(keys) + "}");
  }
  return all;
}

struct Ranks {
  int tensor, pipeline, interleave;
  bool is_sequence_parallel;
};
// Of four GPUs; the rest is data parallelism.
constexpr std::array<Ranks, 9> ranks = {{{1, 1, 1, false},
                                         {2, 1, 1, true},
                                         {4, 1, 1, false},
                                         {1, 2, 1, false},
                                         {1, 2, 2, false},
                                         {2, 2, 1, false},
                                         {2, 2, 2, true},
                                         {1, 4, 1, false},
                                         {1, 4, 2, false}}};

struct States {
  const char* zero;
  const char* optimizer;
  bool is_without_pipeline;
};
constexpr std::array<States, 6> states = {
    {{"{stage: 0}", "resident", false},
     {"{stage: 1, contiguous_gradients: false}", "resident", false},
     {"{stage: 1}", "{name: zero_offload, sub_group_size: 1000000}", false},
     {"{stage: 2}", "{name: zero_offload, sub_group_size: 1000000}", true},
     {"{stage: 3}", "{name: zero_infinity, path: nvme, sub_group_size: 1000000}", true},
     {"{stage: 3}", "{name: mlp_offload, paths: [nvme, pfs], sub_group_size: 1000000}", true}}};

void check(const std::string& kept, const Ranks& r, const States& s, int accumulation) {
  std::vector<Override> overrides = small;
  const auto set = [&](const char* key, const std::string& value) {
    overrides.emplace_back(key, value);
  };
  set("policy.activations", kept);
  set("policy.zero", s.zero);
  set("policy.optimizer", s.optimizer);
  set("workload.tensor_parallel", std::to_string(r.tensor));
  set("workload.pipeline_parallel", std::to_string(r.pipeline));
  set("workload.interleave", std::to_string(r.interleave));
  set("workload.sequence_parallel", r.is_sequence_parallel ? "true" : "false");
  set("workload.accumulation", std::to_string(accumulation));
  INFO(kept << " / " << s.zero << " " << s.optimizer << " / tensor " << r.tensor << " pipeline "
            << r.pipeline << " interleave " << r.interleave << " / accumulation " << accumulation);
  Scenario scenario = load_scenario(scenario_file, overrides);
  const Prediction p = predict(scenario);
  for (const std::string& fault : faults(p.plan)) FAIL_CHECK(fault);
  for (const std::string& law : broken_laws(p.plan, p.timeline, p.demands, p.resources)) {
    FAIL_CHECK(law);
  }
  CHECK(p.report.iteration_time.value() > 0);
}

// Micro-batches of an iteration: one, or four; interleaving wants a multiple of the stages.
int accumulation(const Ranks& r, std::size_t turn) {
  return r.interleave > 1 || turn % 2 == 1 ? 4 : 1;
}

}  // namespace

TEST_CASE("activation policies obey the laws in every arrangement of ranks", "[policy][laws]") {
  // All pairs of activations and arrangements; states and micro-batches take turns.
  std::size_t turn = 0;
  for (const std::string& kept : activations()) {
    for (const Ranks& r : ranks) {
      ++turn;
      const std::size_t allowed = r.pipeline > 1 ? 3 : states.size();
      check(kept, r, states.at(turn % allowed), accumulation(r, turn / allowed));
    }
  }
}

TEST_CASE("an offloading scenario can be predicted again", "[policy]") {
  // What it learned from the first profiling run is learned anew.
  for (const char* keys : {"to: nvme, profile_iteration: 1", "to: host, adaptive: false"}) {
    std::vector<Override> overrides = small;
    overrides.emplace_back("policy.activations",
                           "{name: ssdtrain, threshold: 65536, " + std::string(keys) + "}");
    overrides.emplace_back("policy.optimizer", "resident");
    Scenario scenario = load_scenario(scenario_file, overrides);
    const Prediction first = predict(scenario), second = predict(scenario);
    CHECK(first.timeline.end == second.timeline.end);
    CHECK(to_json(first.report) == to_json(second.report));
  }
}

TEST_CASE("a pipeline stage that lies across nodes is refused", "[policy][input]") {
  // Three nodes of four GPUs in two stages: six GPUs each.
  try {
    load_scenario(scenario_file,
                  {{"workload.pipeline_parallel", "2"},
                   {"policy.zero.stage", "1"},
                   {"policy.optimizer", "resident"},
                   {"machine.network", "{nodes: 3, per_node: 50 GB/s, latency: 10 us}"}});
    FAIL("it was taken");
  } catch (const InputError& error) {
    CHECK_THAT(error.what(), Containing("a stage of 6 GPUs would lie across nodes of 4"));
  }
}

TEST_CASE("optimizers obey the laws with tensors that come and go", "[policy][laws]") {
  // All pairs of states and SSDTrain's ways, and of states and arrangements.
  std::size_t turn = 0;
  for (const States& s : states) {
    for (const char* keys : offloading) {
      ++turn;
      const Ranks& r = ranks.at(turn % (s.is_without_pipeline ? 3 : ranks.size()));
      check("{name: ssdtrain, threshold: 65536, " + std::string(keys) + "}", r, s,
            accumulation(r, turn / 3));
    }
  }
}
