#include <algorithm>
#include <string>
#include <vector>

#include "sim/report/kin.hpp"
#include "sim/run/fixes.hpp"
#include "sim/run/predict.hpp"
#include "tests/catch.hpp"

using namespace tidegate;

namespace {

// BERT H12288 L3 on two GPUs, tensor parallelism 2. Where activations stay on the GPU, one rank is
// simulated for both.
const std::string scenario =
    std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/ssdtrain_bert_a100.yaml";
const Override keep = {"policy.activations", "keep"};

Prediction predicted(const std::vector<Override>& overrides) {
  Scenario read = load_scenario(scenario, overrides);
  return predict(read);
}

const Report::Pool& pool(const Report& report, const std::string& name) {
  const auto at = std::ranges::find(report.pools, name, &Report::Pool::name);
  REQUIRE(at != report.pools.end());
  return *at;
}

std::vector<std::string> kin_names(const Report& report) {
  std::vector<std::string> names;
  for (const Kin& kin : kin_of(report.resources)) names.push_back(kin.name);
  return names;
}

}  // namespace

TEST_CASE("ranks that are not simulated are counted: what they share is told as a whole",
          "[folded]") {
  const Prediction folded = predicted({keep});
  const Prediction whole = predicted({});  // SSDTrain's ranks have different arrays
  REQUIRE(folded.report.pools.size() < whole.report.pools.size());
  // The profile's host: 1000 GiB, of which 15 are the system's.
  const Report::Pool& host = pool(folded.report, "host");
  CHECK(host.capacity == pool(whole.report, "host").capacity);
  CHECK(host.peak == pool(whole.report, "host").peak);
  CHECK(host.count == 1);
  const Report::Pool& gpu = pool(folded.report, "gpu0");
  CHECK(gpu.count == 2);
  CHECK(gpu.capacity == pool(whole.report, "gpu0").capacity);
  CHECK(pool(folded.report, "array4").capacity == pool(whole.report, "array4").capacity);
}

TEST_CASE("resources of ranks that are not simulated have the names of those that are",
          "[folded]") {
  const std::vector<std::string> folded = kin_names(predicted({keep}).report);
  const std::vector<std::string> whole = kin_names(predicted({}).report);
  for (const std::string& name : folded) {
    INFO(name);
    CHECK(std::ranges::find(whole, name) != whole.end());
  }
  CHECK(std::ranges::find(folded, "gpu*.compute (2)") != folded.end());
}

TEST_CASE("what does not fit for tensor-parallel ranks is offered activations outside the GPUs",
          "[folded]") {
  // Parameters 5.44 GiB, kept activations 12.6 GiB a GPU: 17 GiB are too few. With activations
  // elsewhere both ranks are simulated, so that the pools compared are not the same.
  const std::vector<Override> small = {keep, {"machine.gpus.memory", "17 GiB"}};
  const Prediction p = predicted(small);
  REQUIRE(!p.report.fits);
  const Report::Fixes fixes = find_fixes(scenario, small, p, {.wanted = 30});
  const auto offloads = [](const Report::Fix& fix) {
    return std::ranges::any_of(fix.sets, [](const std::string& s) {
      return s.starts_with("policy.activations=") && s.find("recompute") == std::string::npos;
    });
  };
  const auto offer = std::ranges::find_if(fixes.found, offloads);
  REQUIRE(offer != fixes.found.end());
  REQUIRE(offer->pools.size() == 2);
  CHECK(offer->pools[0].peak <= offer->pools[0].capacity);
}
