#include "sim/report/critical_path.hpp"

#include "tests/catch.hpp"
#include "tests/sim/report/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;

namespace {

std::vector<PathSegment> path_of(const Run& run) {
  return critical_path(run.plan, run.timeline, run.demands,
                       steady_period(iterations_of(run.plan, run.timeline)));
}

std::vector<std::string> tasks_of(const Run& run) {
  std::vector<std::string> names;
  for (const PathSegment& s : path_of(run))
    names.push_back(s.task ? run.plan.label(*s.task) : "wait");
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("segments tile the period from its end to its start", "[critical path]") {
  Instant now = to_ticks(19_s);
  for (const PathSegment& s : path_of(two_ranks(20))) {
    CHECK(s.to == now);
    CHECK(s.from < s.to);
    now = s.from;
  }
  CHECK(now == to_ticks(9_s));
}

TEST_CASE("a task that waited for its lane was held up by the task before it", "[critical path]") {
  RunBuilder run;
  const LaneId lane = run.plan.lane("compute", 0);
  run.add({"long", lane}, Delay{3_s}, demand(0, 3), 0, 3);
  run.add({"next", lane}, Delay{1_s}, demand(0, 1), 3, 4);
  CHECK(tasks_of(run.finish(1, 1, {{"gpu"}})) == Names{"next", "long"});
}

TEST_CASE("a task that waited for a buffer was held up by who gave it back", "[critical path]") {
  RunBuilder run;
  const LaneId reader = run.plan.lane("read", 0), user = run.plan.lane("use", 0);
  const TokenId buffers = run.plan.tokens("buffers", 1);
  const TaskId read =
      run.add({"read", reader, 0, 0}, Delay{1_s}, demand(0, 1), 0, 1, {}, {acquire(buffers)});
  run.add({"use", user, 0, 0}, Delay{4_s}, demand(1, 4), 1, 5, {read}, {release(buffers)});
  run.add({"read", reader, 0, 1}, Delay{1_s}, demand(0, 1), 5, 6, {}, {acquire(buffers)});
  CHECK(tasks_of(run.finish(1, 1, {{"drive"}, {"gpu"}})) == Names{"read 1", "use 0", "read 0"});
}

TEST_CASE("a task that waited for a lock was held up by its last holder", "[critical path]") {
  RunBuilder run;
  const LaneId a = run.plan.lane("io", 0), b = run.plan.lane("io", 1);
  const LockId lock = run.plan.lock("drive");
  run.add({"first", a, 0}, Delay{2_s}, demand(0, 2), 0, 2, {}, {hold(lock)});
  run.add({"second", b, 1}, Delay{3_s}, demand(0, 3), 2, 5, {}, {hold(lock)});
  CHECK(tasks_of(run.finish(1, 2, {{"drive"}})) == Names{"second", "first"});
}

TEST_CASE("a task behind one that waits in its lane was held up by the same cause",
          "[critical path]") {
  RunBuilder run;
  const LaneId wide = run.plan.lane("io", 0, 2), cpu = run.plan.lane("cpu", 0);
  const TaskId cause = run.add({"cause", cpu}, Delay{2_s}, demand(0, 2), 0, 2);
  run.add({"waits", wide}, Delay{1_s}, demand(1, 1), 2, 3, {cause});
  run.add({"behind", wide}, Delay{4_s}, demand(1, 4), 2, 6);
  CHECK(tasks_of(run.finish(1, 1, {{"cpu"}, {"drive"}})) == Names{"behind", "cause"});
}

TEST_CASE("a task is blamed on the resource it takes most of", "[critical path]") {
  RunBuilder run;
  Demand both = demand(0, 2);
  both.shares[0].fraction = 0.3;
  both.use(ResourceId{1}, 0.9);
  run.add({"copy", run.plan.lane("h2d", 0)}, Delay{2_s}, both, 0, 2);
  const auto path = path_of(run.finish(1, 1, {{"dram"}, {"pcie"}}));
  REQUIRE(path.size() == 1);
  CHECK(path[0].blame == Blame::resource);
  CHECK(path[0].resource == ResourceId{1});
}

TEST_CASE("of resources taken alike the one with more work is blamed", "[critical path]") {
  // Two links at full speed behind one port at full speed: the port has twice the work of each
  // link.
  RunBuilder run;
  for (int gpu = 0; gpu < 2; ++gpu) {
    Demand copy = demand(gpu, 2);
    copy.use(ResourceId{2}, 1);
    run.add({"copy", run.plan.lane("h2d", static_cast<std::uint16_t>(gpu))},
            Delay{Seconds(2 + gpu)}, copy, 2 * gpu, 2 * gpu + 2);
  }
  const Report report = run.finish(1, 2, {{"link0"}, {"link1"}, {"port"}}).report();
  CHECK(report.resources[0].exposed == 0_s);
  CHECK(report.resources[2].exposed == 2_s);  // the walk ends where no task explains the wait
}

TEST_CASE("who shares a resource with many is held up by it, not by what it takes most of alone",
          "[critical path]") {
  // Four readers, each alone 1 s on its own link and 0.9 s of the drive's time: together the drive
  // has 3.6 s of work and is full, the links are 1/3.6 = 28 % full.
  RunBuilder run;
  for (std::uint16_t r = 0; r < 4; ++r) {
    Demand own = demand(1 + r, 1);
    own.use(ResourceId{0}, 0.9);
    run.add({"read", run.plan.lane("io", r), r}, Delay{Seconds(1 + r)}, own, 0, 3.6);
  }
  const Run four = run.finish(1, 4, {{"drive"}, {"link"}, {"link"}, {"link"}, {"link"}});
  REQUIRE(path_of(four).size() == 1);
  CHECK(path_of(four)[0].resource == ResourceId{0});
}

TEST_CASE("tasks without duration do not lead the walk in a circle", "[critical path]") {
  RunBuilder run;
  const LaneId a = run.plan.lane("a", 0), b = run.plan.lane("b", 0);
  const TokenId token = run.plan.tokens("token", 1);
  const std::vector<Effect> use = {acquire(token), release(token)};
  for (int i = 0; i < 3; ++i) {
    run.add({"x", a}, Delay{}, {}, 1, 1, {}, use);
    run.add({"y", b}, Delay{}, {}, 1, 1, {}, use);
  }
  run.add({"z", a}, Delay{1_s}, demand(0, 1), 1, 2, {}, use);
  CHECK(tasks_of(run.finish(1, 1, {{"gpu"}})) == Names{"z", "wait"});
}

TEST_CASE("clocks that disagree do not lead the walk in a circle", "[critical path]") {
  RunBuilder run;
  const LaneId a = run.plan.lane("a", 0), b = run.plan.lane("b", 0);
  const TokenId token = run.plan.tokens("token", 1);
  // "after" is measured to end where its own predecessor began, and gives back what that one takes.
  const TaskId before = run.add({"before", a}, Delay{1_s}, {}, 3, 4, {}, {acquire(token)});
  run.add({"after", b}, Delay{2_s}, {}, 1, 3, {before}, {release(token)});
  run.add({"last", a}, Delay{3_s}, {}, 4, 5, {before});
  const Report report = run.finish(1, 1, {}).report();
  CHECK(report.latency + report.wait == 5_s);
}

TEST_CASE("the chain of an iteration does not count what the iteration before it did",
          "[critical path]") {
  RunBuilder run;
  const LaneId lane = run.plan.lane("cpu", 0);
  const TaskId first = run.add({"first", lane}, Delay{5_s}, demand(0, 5), 0, 5);
  run.plan.enter(1, Phase::other);
  run.add({"second", lane}, Delay{2_s}, demand(0, 2), 5, 9, {first});  // twice its time alone
  const Report report = run.finish(2, 1, {{"cpu"}}).report();
  CHECK(report.iteration_time == 4_s);
  CHECK(report.bound.chain == 2_s);
}
