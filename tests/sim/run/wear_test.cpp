#include <vector>

#include "sim/run/predict.hpp"
#include "sim/search/evaluate.hpp"
#include "tests/catch.hpp"

/// How long drives last under parallelism: what every rank of a node writes is set against all
/// drives of that node.

using namespace tidegate;

namespace {

const std::string scenarios = std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/";
constexpr double days_per_year = 365.25, seconds_per_day = 86400;

Report report_of(const std::string& file, const std::vector<Override>& overrides) {
  Scenario scenario = load_scenario(scenarios + file, overrides);
  return predict(scenario).report;
}

double life_of(const Report::Path& path, double rated, double amplification, Seconds iteration) {
  const double per_day = path.written.value() * seconds_per_day / iteration.value();
  return rated / (per_day * amplification * days_per_year);
}

}  // namespace

TEST_CASE("a tensor-parallel group writes its whole optimizer to the drives of its node",
          "[report]") {
  // An iteration writes fp32 gradients, 4 bytes a parameter, and fp32 parameters with two moments
  // of Adam, 12 bytes, whoever holds which part. What every rank of the group holds whole, the
  // norms, comes to less than a hundredth.
  const std::vector<Override> small = {
      {"workload.network.layers", "4"},
      {"ranks", "2"},
      {"machine.paths.nvme.endurance", "{value: 1 PB, assumed: toy}"},
      {"machine.paths.nvme.warranty", "{value: 5, assumed: toy}"},
      {"machine.paths.nvme.write_amplification", "{value: 2, assumed: toy}"}};
  for (const char* tensor : {"1", "2"}) {
    INFO(tensor << " tensor-parallel ranks");
    std::vector<Override> all = small;
    all.emplace_back("workload.tensor_parallel", tensor);
    const Report r = report_of("zero_infinity_70b.yaml", all);
    const Report::Path& nvme = r.paths.front();
    REQUIRE(nvme.name == "nvme");
    CHECK(nvme.written.value() ==
          Approx(16 * static_cast<double>(r.facts.parameters)).epsilon(0.01));
    REQUIRE(nvme.life_years);
    CHECK(*nvme.life_years == Approx(life_of(nvme, 1e15, 2, r.iteration_time)));
    const Evaluator evaluator(scenario_source(scenarios + "zero_infinity_70b.yaml"), all);
    CHECK(evaluator.simulate({}).wear.front().life_years.value() == Approx(*nvme.life_years));
  }
}

TEST_CASE("drives of every node of a pipeline wear", "[report]") {
  // Two stages on two nodes of two GPUs; each node has drives of its own.
  const std::string network =
      "{nodes: 2, per_node: {value: 10 GB/s, assumed: toy}, latency: {value: 10 us, assumed: toy}}";
  const Report r = report_of("ssdtrain_bert_a100.yaml", {{"workload.network.layers", "4"},
                                                         {"workload.pipeline_parallel", "2"},
                                                         {"machine.network", network}});
  std::vector<std::string> written;
  for (const Report::Path& path : r.paths) {
    if (path.written <= Bytes(0)) continue;
    written.push_back(path.name);
    CHECK(path.life_years);
  }
  CHECK(written ==
        std::vector<std::string>{"node0.array4", "node0.array3", "node1.array4", "node1.array3"});
}
