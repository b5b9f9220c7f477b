#include "sim/run/tiring.hpp"

#include <string>

#include <fmt/core.h>

#include "tests/catch.hpp"

using namespace tidegate;

namespace {

const std::string file = std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/zero_infinity_70b.yaml";

// Four blocks, whose iteration writes the same bytes every time; the drive's cache is that many
// times as large.
std::vector<Override> with_cache(double times, const std::string& recovery) {
  const std::vector<Override> small = {{"workload.network.layers", "4"},
                                       {"policy.optimizer.buffer_count", "12"}};
  Scenario scenario = load_scenario(file, small);
  const double written = predict(scenario).report.paths.front().written.value();
  std::vector<Override> all = small;
  const auto value = [](const std::string& text) { return "{value: " + text + ", assumed: toy}"; };
  all.emplace_back("machine.paths.nvme.cache", value(fmt::format("{:.0f} B", times * written)));
  all.emplace_back("machine.paths.nvme.write_sustained", value("1 GB/s"));
  all.emplace_back("machine.paths.nvme.cache_recovery", value(recovery));
  return all;
}

struct Run {
  Prediction prediction;
  std::int32_t iterations = 0;
};

Run run(std::vector<Override> overrides, const std::string& iterations = "") {
  if (!iterations.empty()) overrides.emplace_back("iterations", iterations);
  Scenario scenario = load_scenario(file, overrides);
  Prediction p = predict(scenario);
  return {std::move(p), scenario.iterations};
}

double time_of(const Run& r) { return r.prediction.report.iteration_time.value(); }

}  // namespace

TEST_CASE("a run goes on until the cache of its drive is as full as in a long run", "[tiring]") {
  // 3.5 times what an iteration writes have been written in the fourth; three more stand behind it.
  const Run usual = run(with_cache(3.5, "0 B/s"));
  CHECK(usual.iterations == 7);
  CHECK(usual.prediction.report.facts.notes.empty());
  CHECK(time_of(usual) == Approx(time_of(run(with_cache(3.5, "0 B/s"), "20"))).epsilon(1e-3));
  // 5.5 times: full in iteration 6, the last of those that are usual, which were all fast.
  const Run later = run(with_cache(5.5, "0 B/s"));
  CHECK(later.iterations == 9);
  CHECK(time_of(later) == Approx(time_of(usual)).epsilon(1e-3));
  CHECK(time_of(run(with_cache(1e3, "0 B/s"), "6")) < 0.7 * time_of(later));
}

TEST_CASE("a cache that takes many iterations to fill is said, not simulated", "[tiring]") {
  // Full in iteration 100, and three more.
  const Run large = run(with_cache(99.5, "0 B/s"));
  CHECK(large.iterations == 6);
  REQUIRE(large.prediction.report.facts.notes.size() == 1);
  CHECK_THAT(large.prediction.report.facts.notes.front(), Containing("--iterations 103"));
}

TEST_CASE("a cache that empties as fast as it fills is never full", "[tiring]") {
  const Run r = run(with_cache(3.5, "1000 GB/s"));
  CHECK(r.iterations == 6);
  CHECK(r.prediction.report.facts.notes.empty());
}
