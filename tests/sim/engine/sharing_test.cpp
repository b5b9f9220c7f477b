#include "sim/engine/sharing.hpp"

#include "sim/engine/simulate.hpp"

#include "tests/catch.hpp"
#include "tests/sim/engine/toy.hpp"

using namespace tidegate;
using toy::flow;
using toy::Toy;
using toy::wait;

namespace {

constexpr Instant second = 1'000'000'000'000;

// The speeds of flows that all run from the start, one flow of each demand.
std::vector<double> speeds(const std::vector<Demand>& demands,
                           const std::vector<Resource>& resources) {
  const FlowTable table = classify(demands, resources.size());
  const auto count = static_cast<std::uint32_t>(demands.size());
  Sharing sharing(resources, table, std::vector(table.classes.size(), count), count);
  for (std::uint32_t i = 0; i < count; ++i) {
    sharing.join(table.kinds[table.kind[i]].flow_class, i, table.alone[i], 0);
  }
  sharing.settle(0);
  std::vector<double> result;
  for (const std::uint32_t kind : table.kind) {
    result.push_back(sharing.speed(table.kinds[kind].flow_class));
  }
  return result;
}

Instant end_of(const Timeline& t, TaskId task) { return t.end[index(task)]; }

constexpr ResourceId first{0}, other{1};

}  // namespace

TEST_CASE("two equal copies on one link each take twice as long", "[sharing]") {
  Toy toy;
  const ResourceId link = toy.resource();
  const TaskId a = toy.add(toy.lane(), flow(3, {{link}}));
  const TaskId b = toy.add(toy.lane(), flow(3, {{link}}));
  const Plan plan = toy.finish();
  const Timeline t = simulate(plan, toy.demands, toy.resources);
  CHECK(end_of(t, a) == 6 * second);
  CHECK(end_of(t, b) == 6 * second);
}

TEST_CASE("a copy speeds up when its competitor ends", "[sharing]") {
  Toy toy;
  const ResourceId link = toy.resource();
  const TaskId a = toy.add(toy.lane(), flow(1, {{link}}));
  const TaskId b = toy.add(toy.lane(), flow(3, {{link}}));
  const TaskId c = toy.add(toy.lane(), flow(2, {{link}}), {a});
  const Plan plan = toy.finish();
  const Timeline t = simulate(plan, toy.demands, toy.resources);
  // Half speed until a has its 1 s at 2; b has 2 left and c wants 2: both at 6.
  CHECK(end_of(t, a) == 2 * second);
  CHECK(end_of(t, b) == 6 * second);
  CHECK(end_of(t, c) == 6 * second);
}

TEST_CASE("users of a link that fit at full speed do not slow each other", "[sharing]") {
  const std::vector<Resource> link(1);
  const auto x = speeds({flow(1, {{first, 0.25}}), flow(2, {{first, 0.75}})}, link);
  CHECK(x == std::vector<double>{1, 1});
  const auto thirds = speeds(std::vector(3, flow(1, {{first, 1.0 / 3}})), link);
  CHECK(thirds == std::vector<double>{1, 1, 1});
}

TEST_CASE("a capped flow keeps its rate and the big one takes the rest", "[sharing]") {
  // Link 10 units/s. Caps 2 and 10: the small one has less than half and keeps 2, the other gets 8.
  const auto x =
      speeds({flow(1, {{first, 0.2}}, 2), flow(1, {{first, 1}}, 10)}, std::vector<Resource>(1));
  CHECK(x[0] == 1);
  CHECK(x[1] == Approx(0.8).epsilon(1e-14));
}

TEST_CASE("shares of a link follow the weights", "[sharing]") {
  const auto x =
      speeds({flow(1, {{first}}, 0, 3), flow(1, {{first}}, 0, 1)}, std::vector<Resource>(1));
  CHECK(x[0] == Approx(0.75).epsilon(1e-14));
  CHECK(x[1] == Approx(0.25).epsilon(1e-14));
}

TEST_CASE("a flow over two links stops at the tighter one and the others take what is left",
          "[sharing]") {
  // Links of 1 unit/s and 2 units/s. One flow crosses both; the small link has one more flow, the
  // large link one more. 1/2 each on the small link, 2 - 1/2 = 3/2 on the large one.
  const auto x = speeds(
      {flow(1, {{first, 1}, {other, 0.5}}, 1), flow(1, {{first, 1}}, 1), flow(1, {{other, 1}}, 2)},
      std::vector<Resource>(2));
  CHECK(x[0] == Approx(0.5).epsilon(1e-14));
  CHECK(x[1] == Approx(0.5).epsilon(1e-14));
  CHECK(x[2] == Approx(0.75).epsilon(1e-14));
}

TEST_CASE("fairness is in units per second, not in fractions of a link", "[sharing]") {
  // 4 units/s and 1 unit/s alone on the same link (a client that uses it badly): equal rates r with
  // r/4 + r/1 = 1 give r = 0.8.
  const auto x = speeds({flow(1, {{first}}, 4), flow(1, {{first}}, 1)}, std::vector<Resource>(1));
  CHECK(x[0] == Approx(0.2).epsilon(1e-14));
  CHECK(x[1] == Approx(0.8).epsilon(1e-14));
}

TEST_CASE("units that differ by nine orders of magnitude lose no precision", "[sharing]") {
  // A kernel counts in seconds (1 per second), copies in bytes (1e9 per second), all on one memory.
  // At equal levels the kernel reaches its cap 1 first and takes 0.2; two copies share 0.8.
  const auto x =
      speeds({flow(1, {{first, 0.2}}, 1), flow(1, {{first}}, 1e9), flow(2, {{first}}, 2e9)},
             std::vector<Resource>(1));
  CHECK(x[0] == 1);
  CHECK(x[1] == Approx(0.4).epsilon(1e-12));
  CHECK(x[2] == Approx(0.4).epsilon(1e-12));
}

TEST_CASE("a drive's reads run at the pure rate until writes join, then both pay the mixed cost",
          "[sharing]") {
  Toy toy;
  const ResourceId drive = toy.resource({.mixed_cost = {1.5, 2.5}});
  const TaskId read = toy.add(toy.lane(), flow(4, {{drive, 1, 0}}));
  const TaskId pause = toy.add(toy.lane(), wait(2));
  const TaskId write = toy.add(toy.lane(), flow(1, {{drive, 1, 1}}), {pause});
  const Plan plan = toy.finish();
  const Timeline t = simulate(plan, toy.demands, toy.resources);
  // Mixed: 1.5 x + 2.5 x = 1, a quarter speed each. The write needs 4 s; the read has done 2 + 1 by
  // then and ends one second later at the pure rate.
  CHECK(end_of(t, write) == 6 * second);
  CHECK(end_of(t, read) == 7 * second);
}

TEST_CASE("a mixed cost above one slows a flow that is alone on its side", "[sharing]") {
  const std::vector<Resource> drive{{.mixed_cost = {1, 4}}};
  const auto x = speeds({flow(1, {{first, 0.1, 0}}, 0.1), flow(1, {{first, 1, 1}}, 1)}, drive);
  // The read is capped at 0.1 of the drive; the write has 0.9 / 4 left.
  CHECK(x[0] == 1);
  CHECK(x[1] == Approx(0.225).epsilon(1e-14));
}

TEST_CASE("a drive tires when its burst is spent and recovers while it does not write",
          "[sharing]") {
  Toy toy;
  const ResourceId drive = toy.resource({.burst = Seconds(2), .tired_cost = 4, .recovery = 0.5});
  const LaneId lane = toy.lane();
  const TaskId a = toy.add(lane, flow(3, {{drive, 1, 1}}));
  const TaskId pause = toy.add(lane, wait(2), {a});
  const TaskId b = toy.add(lane, flow(2, {{drive, 1, 1}}), {pause});
  const TaskId read = toy.add(toy.lane(), flow(1, {{drive, 1, 0}}), {b});
  const Plan plan = toy.finish();
  const Timeline t = simulate(plan, toy.demands, toy.resources);
  // 2 s of burst, then 1 s of work at a quarter speed: 6. Two idle seconds refill 1 s of burst, so
  // b takes 1 + 4. Reads never tire.
  CHECK(end_of(t, a) == Approx(6 * second).margin(2));
  CHECK(end_of(t, b) == Approx(13 * second).margin(4));
  CHECK(end_of(t, read) - end_of(t, b) == second);
}

TEST_CASE("a work at half rate spends a burst half as fast", "[sharing]") {
  Toy toy;
  const ResourceId drive = toy.resource({.burst = Seconds(2), .tired_cost = 4});
  const TaskId a = toy.add(toy.lane(), flow(6, {{drive, 0.5, 1}}));
  const Plan plan = toy.finish();
  // 4 s at full speed spend the burst; then 0.5 · 4 = 2 times the drive: half speed for 2 s of
  // work.
  const Timeline t = simulate(plan, toy.demands, toy.resources);
  CHECK(end_of(t, a) == Approx(8 * second).margin(4));
}

TEST_CASE("jittered copies of one route form one class", "[sharing]") {
  std::vector<Demand> demands;
  for (int i = 1; i <= 100; ++i)
    demands.push_back(flow(i / 12e9, {{first, 1}, {other, 12.0 / 25}}, i));
  const FlowTable table = classify(demands, 2);
  CHECK(table.classes.size() == 1);
}
