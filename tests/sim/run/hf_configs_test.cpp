#include <algorithm>
#include <filesystem>
#include <vector>

#include "sim/run/predict.hpp"
#include "tests/catch.hpp"

/// Networks that people download, on nodes that people have: each question gets an answer.

using namespace tidegate;
namespace fs = std::filesystem;

namespace {

const std::string folder = TIDEGATE_SOURCE_DIR "/tests/data/hf_configs";

Report report_of(const std::string& config, const std::string& hardware,
                 const std::string& policy) {
  const std::string text = "workload: {config: " + config +
                           ", sequence: 512}\nhardware: " + hardware +
                           "\nranks: 1\niterations: 1\npolicy: " + policy + "\n";
  Scenario scenario =
      read_scenario(yaml::load_text(text, "s.yaml"), "s", folder + "/scenario.yaml");
  return predict(scenario).report;
}

// It fits with every pool within its capacity, or a pool is named that is too small for its owners.
void check_answer(const Report& report) {
  CHECK(report.iteration_time > Seconds(0));
  CHECK(report.tokens_per_second > 0);
  bool is_within = true, is_out_of_memory = false;
  for (const Report::Pool& pool : report.pools) {
    is_within = is_within && pool.peak <= pool.capacity;
    is_out_of_memory = is_out_of_memory || (pool.allocator && pool.allocator->out_of_memory);
  }
  if (report.fits) {
    CHECK(is_within);
    CHECK_FALSE(is_out_of_memory);
    return;
  }
  CHECK((!report.overflows.empty() || is_out_of_memory));
  for (const Report::Overflow& o : report.overflows) {
    CHECK(o.needed > o.capacity);
    REQUIRE_FALSE(o.owners.empty());
    CHECK(o.owners.front().bytes > 0);
  }
}

}  // namespace

TEST_CASE("every network of a config.json gets an answer on every node", "[hugging_face]") {
  std::vector<std::string> configs;
  for (const auto& entry : fs::directory_iterator(folder))
    configs.push_back(entry.path().filename().string());
  std::ranges::sort(configs);
  REQUIRE(configs.size() >= 13);
  for (const std::string& config : configs) {
    for (const char* hardware : {"workstation_rtx4090", "a100_8gpu", "h200_8gpu"}) {
      for (const char* policy : {"{zero: {stage: 2}, optimizer: zero_offload}",
                                 "{zero: {stage: 3}, activations: recompute, parameters: host, "
                                 "optimizer: {name: zero_infinity, path: nvme}}"}) {
        INFO(config << " on " << hardware << " with " << policy);
        check_answer(report_of(config, hardware, policy));
      }
    }
  }
}

// 16-bit parameters alone: 1.4e11 bytes of 70 billion are more than 24e9, 2.2e8 of BERT are less.
TEST_CASE("what fits a workstation is small", "[hugging_face]") {
  const char* keep = "{zero: {stage: 2}, optimizer: zero_offload}";
  CHECK(report_of("bert-base.json", "workstation_rtx4090", keep).fits);
  const Report large = report_of("llama-2-70b.json", "workstation_rtx4090", keep);
  CHECK_FALSE(large.fits);
  REQUIRE_FALSE(large.overflows.empty());
  CHECK(std::ranges::any_of(large.overflows,
                            [](const Report::Overflow& o) { return o.pool == "gpu0"; }));
}
