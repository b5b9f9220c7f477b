#include "sim/search/bound.hpp"

#include <random>

#include "sim/search/corners.hpp"
#include "sim/search/evaluate.hpp"
#include "sim/search/space.hpp"
#include "tests/catch.hpp"

using namespace tidegate;

namespace {

const std::string scenarios = std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/";

// Fewer layers keep everything that bounds are made of, and simulations short.
struct Case {
  const char* file;
  std::vector<Override> overrides;
};
const std::vector<Case> cases = {
    {"mlp_offload_70b.yaml", {{"workload.network.layers", "12"}}},
    {"zero_infinity_70b.yaml", {{"workload.network.layers", "12"}, {"workload.accumulation", "2"}}},
    {"mlp_offload_70b.yaml",
     {{"workload.network.layers", "6"},
      {"workload.accumulation", "4"},
      {"policy.optimizer", "zero_offload"}}},
    {"ssdtrain_mlp_offload_a100.yaml",
     {{"workload.network.layers", "4"}, {"policy.activations", "keep"}}},
    {"mlp_offload_70b.yaml",
     {{"workload.network.layers", "8"},
      {"policy.zero.stage", "1"},
      {"policy.activations", "keep"},
      {"policy.optimizer", "resident"},
      {"workload.accumulation", "4"}}},
};

// A combination of any options, crossed and refined.
Picks random_picks(const Space& space, std::mt19937& random) {
  Picks picks = space.today();
  for (std::size_t a = 0; a < space.axes.size(); ++a) {
    std::uniform_int_distribution<std::uint32_t> any(
        0, static_cast<std::uint32_t>(space.axes[a].options.size() - 1));
    const auto option = static_cast<std::uint16_t>(any(random));
    if (space.applies(a, picks)) picks[a] = option;
  }
  return picks;
}

}  // namespace

TEST_CASE("no simulation is faster or needs less than its bound", "[bound][laws]") {
  std::mt19937 random(20261130);
  for (const Case& c : cases) {
    const Evaluator evaluator(scenario_source(scenarios + c.file), c.overrides);
    const Space space = default_space(evaluator.scenario({}), evaluator.values());
    std::size_t compared = 0, fitting = 0;
    for (int i = 0; i < 4000 && compared < 60; ++i) {
      const auto sets = space.sets_of(random_picks(space, random));
      const Screening s = evaluator.screen(sets);
      if (!s.refusal.empty()) continue;
      ++compared;
      const Trial trial = evaluator.simulate(sets);
      std::string text = c.file;
      for (const auto& [key, value] : sets) text += " " + key + "=" + value;
      INFO(text << "\nlimited by " << s.bound.limited_by);
      // A task's end is rounded up to a picosecond; sums of seconds to 16 digits.
      CHECK(s.bound.time.value() <= trial.iteration_time.value() * (1 + 1e-9));
      REQUIRE(s.bound.needs.size() == trial.needs.size());
      for (std::size_t p = 0; p < trial.needs.size(); ++p) {
        INFO(trial.needs[p].pool);
        CHECK(s.bound.needs[p].pool == trial.needs[p].pool);
        CHECK(s.bound.needs[p].bytes <= trial.needs[p].bytes);
      }
      // Screening never rejects what fits.
      if (trial.fits) CHECK(s.bound.may_fit());
      fitting += trial.fits ? 1 : 0;
    }
    CHECK(compared == 60);
    INFO(c.file);
    CHECK(fitting > 0);
  }
}

TEST_CASE("what fits is never ruled out with its choice", "[bound][laws]") {
  std::mt19937 random(20261201);
  std::size_t ruled_out = 0;
  for (const Case& c : cases) {
    const Evaluator evaluator(scenario_source(scenarios + c.file), c.overrides);
    const Space space = default_space(evaluator.scenario({}), evaluator.values());
    Threads threads(evaluator, 1);
    const TuneOptions options;
    CandidatePool pool(threads, space, options, nullptr);
    std::size_t fitting = 0;
    for (int i = 0; i < 2000 && fitting < 12; ++i) {
      const Picks picks = random_picks(space, random);
      const auto sets = space.sets_of(picks);
      const Screening s = evaluator.screen(sets);
      if (!s.refusal.empty() || !s.bound.may_fit()) continue;
      const Trial trial = evaluator.simulate(sets);
      if (!trial.fits) continue;
      ++fitting;
      Picks crossed = picks;
      for (std::size_t a = space.crossed; a < crossed.size(); ++a) crossed[a] = 0;
      std::string text = c.file;
      for (const auto& [key, value] : sets) text += " " + key + "=" + value;
      INFO(text);
      // Whoever is a little slower than this one cannot rule its choice out.
      const Seconds slower = trial.iteration_time * (1 + 1e-6);
      CHECK(least_bound(pool, space, crossed, slower) < slower);
      const Seconds half = 0.5 * trial.iteration_time;
      ruled_out += least_bound(pool, space, crossed, half) >= half ? 1U : 0U;
    }
    CHECK(fitting > 0);
  }
  CHECK(ruled_out > 0);
}
