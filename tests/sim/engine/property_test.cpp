#include <algorithm>
#include <cmath>

#include "sim/engine/simulate.hpp"
#include "sim/plan/check.hpp"
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
    CHECK(faults(plan) == std::vector<std::string>{});
    CHECK(broken_laws(plan, timeline, toy.demands, toy.resources) == std::vector<std::string>{});
  }
}

TEST_CASE("random open-loop plans end when the textbook says", "[simulate]") {
  double worst = 0;
  int skipped = 0, run = 0;  // of the tasks that hang on a choice
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    toy::Toy toy = random_plan(seed, Features::open_loop);
    const Plan plan = toy.finish();
    const Timeline timeline = simulate(plan, toy.demands, toy.resources);
    const TextbookRun expected = textbook_run(plan, toy.demands, toy.resources);
    for (std::size_t t = 0; t < plan.size(); ++t) {
      const double end = to_seconds(timeline.end[t]).value();
      const double error = std::abs(end - expected.ends[t]) / std::max(expected.ends[t], 1e-3);
      worst = std::max(worst, error);
      INFO("seed " << seed << " task " << t << " ends at " << end << ", expected "
                   << expected.ends[t]);
      REQUIRE(error < 1e-9);
      // The textbook notes what it skips when it does; the timeline only keeps final outcomes.
      REQUIRE(is_skipped(plan, static_cast<TaskId>(t), timeline) == expected.is_skipped[t]);
      if (!plan.tasks[t].when.is_always()) ++(expected.is_skipped[t] ? skipped : run);
    }
  }
  INFO("worst relative difference " << worst);
  CHECK(worst < 1e-9);
  // The plans have some of both.
  CHECK(skipped > 100);
  CHECK(run > 100);
}

TEST_CASE("the same plan gives the same bytes", "[simulate]") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    toy::Toy toy = random_plan(seed, Features::all);
    const Plan plan = toy.finish();
    const Timeline a = simulate(plan, toy.demands, toy.resources);
    const Timeline b = simulate(plan, toy.demands, toy.resources);
    CHECK(a.start == b.start);
    CHECK(a.end == b.end);
    CHECK(a.choices == b.choices);
    for (std::size_t p = 0; p < a.pools.size(); ++p) {
      CHECK(a.pools[p].peak == b.pools[p].peak);
      CHECK(a.pools[p].peak_at == b.pools[p].peak_at);
      CHECK(a.pools[p].peak_task == b.pools[p].peak_task);
      CHECK(a.pools[p].first_over == b.pools[p].first_over);
    }
  }
}
