#include "sim/report/memory.hpp"

#include "tests/catch.hpp"
#include "tests/sim/report/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;

TEST_CASE("the peak of a pool is told with its owners, largest first", "[report]") {
  const Report report = two_ranks(20).report();
  CHECK(report.fits);
  REQUIRE(report.pools.size() == 2);
  const Report::Pool& pool = report.pools[0];
  CHECK(pool.peak == 11_GB);  // backward: weights, activations and gradients
  CHECK(pool.peak_at == 2_s);
  CHECK(pool.peak_task == "backward");
  CHECK(pool.owners == std::vector<Report::Owner>{{"weights", 6'000'000'000},
                                                  {"activations", 3'000'000'000},
                                                  {"gradients", 2'000'000'000}});
}

TEST_CASE("a plan that needs more than a pool holds does not fit", "[report]") {
  const Report report = two_ranks(8).report();
  CHECK_FALSE(report.fits);
  REQUIRE(report.overflows.size() == 2);
  const Report::Overflow& over = report.overflows[0];
  CHECK(over.pool == "gpu0");
  CHECK(over.task == "forward");  // weights and activations are 9 GB already
  CHECK(over.at == 0_s);
  CHECK(over.capacity == 8_GB);
  CHECK(over.held == 9_GB);
  CHECK(over.needed == 11_GB);
  CHECK(over.owners.size() == 2);
}

TEST_CASE("a pool filled to the last byte does not overflow", "[report]") {
  CHECK(two_ranks(11).report().overflows.empty());
}

TEST_CASE("bytes freed by one task can be taken by the next at the same instant", "[report]") {
  RunBuilder run;
  const LaneId lane = run.plan.lane("cpu", 0);
  const PoolId pool = run.plan.pool("host", {}, 10_GB);
  const BufferId a = run.plan.buffer(pool, run.plan.owner("a"), 6_GB);
  const BufferId b = run.plan.buffer(pool, run.plan.owner("b"), 7_GB);
  const TaskId first = run.add({"first", lane}, Delay{1_s}, {}, 0, 1, {}, {allocate(a), free(a)});
  const TaskId join = run.add({"join", lane}, Delay{}, {}, 1, 1, {first}, {allocate(b)});
  run.add({"second", lane}, Delay{1_s}, {}, 1, 2, {join}, {free(b)});
  const Report report = run.finish(1, 1, {}).report();
  CHECK(report.fits);
  CHECK(report.pools[0].peak == 7_GB);
}

TEST_CASE("the steady peak leaves out what only the first iteration held", "[report]") {
  RunBuilder run;
  const LaneId lane = run.plan.lane("cpu", 0);
  const PoolId pool = run.plan.pool("host", {}, 10_GB);
  const OwnerId owner = run.plan.owner("state");
  const BufferId kept = run.plan.buffer(pool, owner, 2_GB);
  const BufferId once = run.plan.buffer(pool, owner, 5_GB);
  const BufferId each = run.plan.buffer(pool, owner, 1_GB);
  run.add({"a", lane}, Delay{1_s}, {}, 0, 1, {}, {allocate(kept), allocate(once), free(once)});
  run.plan.enter(1, Phase::other);
  run.add({"b", lane}, Delay{1_s}, {}, 1, 2, {}, {});
  run.add({"c", lane}, Delay{1_s}, {}, 2, 3, {}, {allocate(each), free(each), free(kept)});
  const Report report = run.finish(2, 1, {}).report();
  CHECK(report.pools[0].peak == 7_GB);
  CHECK(report.pools[0].steady_peak == 3_GB);
}

TEST_CASE("start-up ends with the first task of a phase, and training begins with what it left",
          "[report]") {
  RunBuilder run;
  const LaneId lane = run.plan.lane("cpu", 0);
  const PoolId pool = run.plan.pool("host", {}, 10_GB);
  const BufferId copies = run.plan.buffer(pool, run.plan.owner("copies"), 7_GB);
  const BufferId states = run.plan.buffer(pool, run.plan.owner("states"), 4_GB);
  const BufferId activations = run.plan.buffer(pool, run.plan.owner("activations"), 1_GB);
  const TaskId load =
      run.add({"load", lane}, Delay{}, {}, 0, 0, {}, {allocate(copies), free(copies)});
  const TaskId set_up = run.add({"set up", lane}, Delay{}, {}, 0, 0, {load}, {allocate(states)});
  run.plan.enter(0, Phase::forward);
  run.add({"forward", lane}, Delay{1_s}, {}, 0, 1, {set_up},
          {allocate(activations), free(activations), free(states)});
  const Report report = run.finish(1, 1, {}).report();
  const Report::Pool& host = report.pools[0];
  CHECK(host.startup_peak == 7_GB);   // the copies are gone when states come
  CHECK(host.training_peak == 5_GB);  // states and activations
  CHECK(host.peak == 7_GB);
  CHECK(host.peaks_at_startup());
  CHECK(host.owners == std::vector<Report::Owner>{{"copies", 7'000'000'000}});
  CHECK(host.training_owners ==
        std::vector<Report::Owner>{{"states", 4'000'000'000}, {"activations", 1'000'000'000}});
}
