#include <algorithm>
#include <cmath>

#include "sim/engine/simulate.hpp"
#include "sim/timeline/laws.hpp"

#include "tests/catch.hpp"
#include "tests/sim/engine/random_plan.hpp"
#include "tests/sim/engine/textbook.hpp"

using namespace tidegate;

TEST_CASE("random plans obey the laws of timelines", "[simulate]") {
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    toy::Toy toy = random_plan(seed, Features::all);
    const Plan plan = toy.finish();
    const Timeline timeline = simulate(plan, toy.demands, toy.resources);
    INFO("seed " << seed);
    CHECK(broken_laws(plan, timeline, toy.demands, toy.resources) == std::vector<std::string>{});
  }
}

TEST_CASE("random open-loop plans end when the textbook says", "[simulate]") {
  double worst = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    toy::Toy toy = random_plan(seed, Features::open_loop);
    const Plan plan = toy.finish();
    const Timeline timeline = simulate(plan, toy.demands, toy.resources);
    const std::vector<double> expected = textbook_ends(plan, toy.demands, toy.resources);
    for (std::size_t t = 0; t < plan.size(); ++t) {
      const double end = to_seconds(timeline.end[t]).value();
      const double error = std::abs(end - expected[t]) / std::max(expected[t], 1e-3);
      worst = std::max(worst, error);
      INFO("seed " << seed << " task " << t << " ends at " << end << ", expected " << expected[t]);
      REQUIRE(error < 1e-9);
    }
  }
  INFO("worst relative difference " << worst);
  CHECK(worst < 1e-9);
}

TEST_CASE("the same plan gives the same bytes", "[simulate]") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    toy::Toy toy = random_plan(seed, Features::all);
    const Plan plan = toy.finish();
    const Timeline a = simulate(plan, toy.demands, toy.resources);
    const Timeline b = simulate(plan, toy.demands, toy.resources);
    CHECK(a.start == b.start);
    CHECK(a.end == b.end);
    for (std::size_t p = 0; p < a.pools.size(); ++p) {
      CHECK(a.pools[p].peak == b.pools[p].peak);
      CHECK(a.pools[p].peak_at == b.pools[p].peak_at);
      CHECK(a.pools[p].peak_task == b.pools[p].peak_task);
      CHECK(a.pools[p].first_over == b.pools[p].first_over);
    }
  }
}
