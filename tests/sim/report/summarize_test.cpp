#include "sim/report/report.hpp"

#include "models/base/error.hpp"

#include "tests/catch.hpp"
#include "tests/sim/report/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;

namespace {

Seconds exposed_in_all(const Report& report) {
  Seconds sum = report.latency + report.wait;
  for (const Report::Resource& r : report.resources) sum += r.exposed;
  return sum;
}

Run one_lane(const std::vector<double>& ends, int iterations) {
  RunBuilder run;
  const LaneId lane = run.plan.lane("compute", 0);
  double start = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    run.plan.enter(static_cast<std::uint16_t>(i), Phase::other);
    run.add({"step", lane}, Delay{Seconds(ends[i] - start)},
            Demand{.alone = Seconds(ends[i] - start)}, start, ends[i]);
    start = ends[i];
  }
  return run.finish(iterations, 1, {});
}

}  // namespace

TEST_CASE("the last of two iterations is the steady one", "[report]") {
  const Report report = two_ranks(20).report();
  CHECK(report.first_iteration_time == 9_s);
  CHECK(report.iteration_time == 10_s);
  CHECK(report.steady_iterations == 1);
}

TEST_CASE("with three iterations or more the last two are averaged", "[report]") {
  const Report report = one_lane({10, 14, 20}, 3).report();  // 10, 4 and 6 s
  CHECK(report.iteration_time == 5_s);
  CHECK(report.first_iteration_time == 10_s);
  REQUIRE(report.iterations.size() == 3);
  CHECK(report.iterations[1].time() == 4_s);
}

TEST_CASE("phases end with the marks of all ranks and tile the iteration", "[report]") {
  Run run = two_ranks(20);
  SECTION("ranks in step: 2 s forward, 3 s backward, 1 s late and 4 s of writing") {
    const Report report = run.report();
    CHECK(report.phases == PhaseTimes{2_s, 3_s, 5_s, 0_s});
  }
  SECTION("forward lasts until the slower rank is through") {
    run.timeline.end[9] = to_ticks(12_s);  // rank 1, forward of iteration 1
    const Report report = run.report();
    CHECK(run.plan.label(TaskId{9}) == "forward");
    CHECK(report.phases == PhaseTimes{3_s, 2_s, 5_s, 0_s});
  }
}

TEST_CASE("an iteration without marks is all other", "[report]") {
  CHECK(one_lane({4}, 1).report().phases == PhaseTimes{0_s, 0_s, 0_s, 4_s});
}

TEST_CASE("work left behind after the last mark is a drain and no iteration time", "[report]") {
  Run run = two_ranks(20);
  run.plan.marks.pop_back(), run.plan.marks.pop_back();
  run.plan.marks.erase(run.plan.marks.end() - 2);  // neither rank waits for its last write
  const Report report = run.report();
  CHECK(report.iterations.back().to == to_ticks(14_s));
  CHECK(report.iteration_time == 5_s);
  CHECK(report.drain == 5_s);
}

TEST_CASE("rates follow from the facts and the steady iteration", "[report]") {
  Run run = two_ranks(20);
  run.facts.gpus = 2;
  run.facts.tokens_per_iteration = 1000;
  run.facts.model_flops = Flops(60e12);
  run.facts.hardware_flops = Flops(80e12);
  const Report report = run.report();
  CHECK(report.tokens_per_second == 100);
  CHECK(report.model_rate_per_gpu == 3_TFLOPs);
  CHECK(report.hardware_rate_per_gpu == 4_TFLOPs);
}

TEST_CASE("a resource is busy while any task uses it, latencies excluded", "[report]") {
  const Report report = two_ranks(20).report();
  CHECK(report.resources[0].busy_fraction == Approx(0.45));  // (1.5 + 3) / 10
  CHECK(report.resources[2].busy_fraction == Approx(0.4));   // two writes at once, 4 s
  CHECK(report.resources[2].work_fraction == Approx(0.4));   // two writes of 2 s alone
  CHECK(report.resources[2].work == 4_s);
}

TEST_CASE("a use that reaches into the steady period counts for the part inside", "[report]") {
  Run run = two_ranks(20);
  run.timeline.end[2] = to_ticks(13_s);  // rank 0 writes 5 - 13: half of its 8 s after 9
  run.plan.marks[2].task = TaskId{5};    // and does not wait for it
  const Report report = run.report();
  CHECK(report.iterations[1].from == to_ticks(9_s));
  CHECK(report.resources[2].busy_fraction == Approx(0.8));  // 9 - 13 and 15 - 19
  CHECK(report.resources[2].work_fraction == Approx(0.5));  // 1 + 2 + 2 of 10 s
}

TEST_CASE("exposed times, latency and wait sum to the iteration", "[report]") {
  const Report report = two_ranks(20).report();
  CHECK(report.resources[0].exposed == Seconds(4.5));  // rank 0 carries the path
  CHECK(report.resources[1].exposed == 0_s);
  CHECK(report.resources[2].exposed == 4_s);
  CHECK(report.latency == Seconds(0.5));
  CHECK(report.wait == 1_s);  // nothing explains the late write
  CHECK(exposed_in_all(report).value() == Approx(10));
}

TEST_CASE("the critical path is told by task names, longest first", "[report]") {
  const Report report = two_ranks(20).report();
  REQUIRE(report.critical_tasks.size() == 3);
  CHECK(report.critical_tasks[0].name == "write");
  CHECK(report.critical_tasks[0].time == 4_s);
  CHECK(report.critical_tasks[1].name == "backward");
  CHECK(report.critical_tasks[2].time == 2_s);  // forward with its latency
  CHECK(report.critical_tasks[2].count == 1);
}

TEST_CASE("the bound is the chain of dependences or the work of one resource", "[report]") {
  Run run = two_ranks(20);
  SECTION("a chain of 0.5 + 1.5 + 3 + 2 s per iteration") {
    const Report report = run.report();
    CHECK(report.bound.time == 7_s);
    CHECK(report.bound.limited_by == "dependences");
  }
  SECTION("two writes of 4 s on one drive take 8 s, whatever the order") {
    for (Demand& d : run.demands) {
      if (d.shares[0].resource == ResourceId{2}) d.alone = 4_s;
    }
    for (std::size_t t = 6; t < 12; ++t) run.timeline.end[t] += to_ticks(4_s);
    run.plan.after_list.clear();  // independent of each other, the writes bind
    for (Task& task : run.plan.tasks) task.first_after = 0;
    const Report report = run.report();
    CHECK(report.bound.time == 8_s);
    CHECK(report.bound.limited_by == "drive");
  }
}

TEST_CASE("bytes are counted per path and per iteration, and wear the drive", "[report]") {
  Run run = two_ranks(20);
  // 2 GB in 10 s are 17.28 TB a day; amplified twice, half a year of a rating of a year's writing.
  run.facts.storage = {{"nvme0", Bytes(17.28e12 * 365.25), 2}, {"nvme1", Bytes(1e15)}};
  const Report report = run.report();
  REQUIRE(report.paths.size() == 2);
  CHECK(report.paths[0].name == "nvme0");
  CHECK(report.paths[0].read == 0_B);
  CHECK(report.paths[0].written == 2_GB);
  CHECK(report.paths[0].written_per_day.value() == Approx(17.28e12));
  REQUIRE(report.paths[0].life_years);
  CHECK(*report.paths[0].life_years == Approx(0.5));
  CHECK_FALSE(report.paths[1].life_years);  // never written
  CHECK(report.resources[2].bytes == 2_GB);
}

TEST_CASE("a drive's wear is told in drive writes a day, as its rating is", "[report]") {
  Run run = two_ranks(20);
  // 17.28 TB a day on 4 TB are 4.32 drive writes; 36.5 PB over 5 · 365 days on 4 TB are 5.
  run.facts.storage = {{.name = "nvme0",
                        .rated = Bytes(36.5e15),
                        .write_amplification = 1.25,
                        .rated_write_amplification = 2.5,
                        .capacity = Bytes(4e12),
                        .warranty_years = 5}};
  const Report::Path path = run.report().paths.at(0);
  REQUIRE((path.drive_writes_per_day && path.rated_drive_writes_per_day && path.life_years));
  CHECK(*path.drive_writes_per_day == Approx(4.32));
  CHECK(*path.rated_drive_writes_per_day == Approx(5));
  // Writing at the rated pace takes 5 years, less the odd days of 365.25; at 4.32 / 5 of it, and
  // with half the amplification that it is rated with, 2 · 5 / 4.32 times as long.
  CHECK(*path.life_years == Approx(5 * 365 / 365.25 * 2 * 5 / 4.32));
  CHECK(path.write_amplification == 1.25);
  CHECK(path.rated_write_amplification == 2.5);
}

// SSDTrain's projection (arXiv 2408.10013): four 12.8 TB drives of 3 drive writes a day for 5 years
// are rated for 4 · 12.8 TB · 3 · 365 · 5 = 280.32 PB, which is 700.8 PB of sequential writes that
// are not amplified, instead of 2.5 times. ZeRO-3 175B on 384 GPUs writes 1593.0 GB each 245.396 s;
// its published model prints 3.423 years of 365 days.
TEST_CASE("the published shortest life of drives under SSDTrain is met", "[report][published]") {
  RunBuilder builder;
  const LaneId lane = builder.plan.lane("io", 0);
  builder.plan.enter(0, Phase::forward);
  const TaskId write = builder.add(
      {"write", lane},
      FileIo{.direction = Direction::write, .memory = {Tier::gpu, 0}, .bytes = Bytes(1593.0e9)},
      demand(0, 245.396), 0, 245.396);
  builder.plan.mark(write, 0);
  Run run = builder.finish(1, 1, {{"drives"}});
  run.facts.storage = {{.name = "drives",
                        .rated = Bytes(4 * 12.8e12 * 3 * 365 * 5),
                        .write_amplification = 1,
                        .rated_write_amplification = 2.5,
                        .capacity = Bytes(4 * 12.8e12),
                        .warranty_years = 5}};
  const Report::Path path = run.report().paths.at(0);
  CHECK(path.written.value() == 1593.0e9);
  REQUIRE((path.life_years && path.rated_drive_writes_per_day));
  CHECK(*path.life_years * 365.25 / 365 == Approx(3.423).margin(0.0005));
  // 700.8 PB / 1593.0 GB = 439925 steps of 245.396 s
  CHECK(*path.life_years * 365.25 * 86400 == Approx(700.8e15 / 1593.0e9 * 245.396));
  CHECK(*path.rated_drive_writes_per_day == Approx(3));
  // 86400 / 245.396 · 1593.0 GB / 51.2 TB
  CHECK(*path.drive_writes_per_day == Approx(10.954).margin(0.001));
}

TEST_CASE("a file system has no drive writes", "[report]") {
  Run run = two_ranks(20);
  run.facts.storage = {{.name = "pfs", .rated = Bytes(0)}};
  const Report::Path path = run.report().paths.at(0);
  CHECK_FALSE(path.drive_writes_per_day);
  CHECK_FALSE(path.rated_drive_writes_per_day);
}

TEST_CASE("a drive without a rating has no life expectancy", "[report]") {
  const Report report = two_ranks(20).report();
  REQUIRE(report.paths.size() == 1);
  CHECK(report.paths[0].name == "path0");
  CHECK_FALSE(report.paths[0].life_years);
}

TEST_CASE("copies are counted by direction", "[report]") {
  RunBuilder run;
  const LaneId lane = run.plan.lane("h2d", 0);
  const Copy down{{Tier::host, 0}, {Tier::gpu, 1}, 3_GB};
  run.add({"copy", lane}, down, demand(0, 1), 0, 1);
  run.add({"copy", lane}, down, demand(0, 1), 1, 2);
  const Report report = run.finish(1, 1, {{"pcie"}}).report();
  REQUIRE(report.links.size() == 1);
  CHECK(report.links[0].name == "host -> gpu1");
  CHECK(report.links[0].bytes == 6_GB);
}

TEST_CASE("a timeline of another plan is refused", "[report]") {
  Run run = two_ranks(20);
  run.timeline.end.pop_back();
  CHECK_THROWS_AS(run.report(), std::logic_error);
}

TEST_CASE("an empty plan has an empty report", "[report]") {
  const Report report = RunBuilder().finish(1, 1, {{"drive"}}).report();
  CHECK(report.fits);
  CHECK(report.iteration_time == 0_s);
  CHECK(report.resources[0].busy_fraction == 0);
}
