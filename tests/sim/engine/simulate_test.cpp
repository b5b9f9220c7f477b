#include "sim/engine/simulate.hpp"

#include "tests/catch.hpp"
#include "tests/sim/engine/toy.hpp"

using namespace tidegate;
using toy::flow;
using toy::Toy;
using toy::wait;

namespace {

constexpr Instant second = 1'000'000'000'000;

Timeline run(Toy& toy) {
  const Plan plan = toy.finish();
  return simulate(plan, toy.demands, toy.resources);
}
Instant end_of(const Timeline& t, TaskId task) { return t.end[index(task)]; }
Instant start_of(const Timeline& t, TaskId task) { return t.start[index(task)]; }

std::string failure(Toy& toy) {
  try {
    run(toy);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an empty plan takes no time", "[simulate]") {
  Toy toy;
  CHECK(run(toy).makespan == 0);
}

TEST_CASE("a task alone takes its latency and then its time alone", "[simulate]") {
  Toy toy;
  const ResourceId link = toy.resource();
  const TaskId a = toy.add(toy.lane(), flow(2, {{link, 0.5}}, 0, 1, 1));
  const Timeline t = run(toy);
  CHECK(start_of(t, a) == 0);
  CHECK(end_of(t, a) == 3 * second);
  CHECK(t.makespan == 3 * second);
}

TEST_CASE("a delay takes its time and a join takes none", "[simulate]") {
  Toy toy;
  const LaneId lane = toy.lane(1);
  const TaskId a = toy.add(lane, wait(2));
  const TaskId b = toy.add(lane, wait(0), {a});
  const TaskId c = toy.add(lane, wait(0), {b});
  const TaskId d = toy.add(lane, wait(1), {c});
  const Timeline t = run(toy);
  CHECK(start_of(t, b) == 2 * second);
  CHECK(end_of(t, c) == 2 * second);
  CHECK(end_of(t, d) == 3 * second);
}

TEST_CASE("lanes start tasks in order and run at most their width", "[simulate]") {
  Toy toy;
  const LaneId lane = toy.lane(2), other = toy.lane();
  const TaskId late = toy.add(other, wait(1));
  const TaskId a = toy.add(lane, wait(2));
  const TaskId b = toy.add(lane, wait(3), {late});  // starts at 1, holds up c
  const TaskId c = toy.add(lane, wait(1));          // a ends at 2
  const TaskId d = toy.add(lane, wait(1));          // b and c end at 3
  const Timeline t = run(toy);
  CHECK(start_of(t, a) == 0);
  CHECK(start_of(t, b) == 1 * second);
  CHECK(start_of(t, c) == 2 * second);
  CHECK(start_of(t, d) == 3 * second);
  CHECK(t.makespan == 4 * second);
}

TEST_CASE("tokens bound the number of buffers between producer and consumer", "[simulate]") {
  Toy toy;
  const TokenId slots = toy.builder.tokens("slots", 2);
  const LaneId reads = toy.lane(), uses = toy.lane();
  TaskId read[4];
  for (TaskId& r : read) {
    r = toy.add(reads, wait(1), {}, {acquire(slots)});
    toy.add(uses, wait(3), {r}, {release(slots)});
  }
  const Timeline t = run(toy);
  // Reads 0 and 1 fill both slots by 2; use 0 ends at 4, use 1 at 7: reads 2 and 3 start then.
  CHECK(start_of(t, read[1]) == 1 * second);
  CHECK(start_of(t, read[2]) == 4 * second);
  CHECK(start_of(t, read[3]) == 7 * second);
  CHECK(t.makespan == 13 * second);
}

TEST_CASE("waiting tasks get tokens in the order in which they began to wait", "[simulate]") {
  Toy toy;
  const TokenId slots = toy.builder.tokens("slots", 2);
  const LaneId first = toy.lane();
  const TaskId a = toy.add(first, wait(4), {}, {acquire(slots, 2), release(slots, 1)});
  const TaskId d = toy.add(first, wait(1), {a}, {release(slots, 1)});
  const TaskId one = toy.add(toy.lane(), wait(1));
  const TaskId two = toy.add(toy.lane(), wait(2));
  // The one with the higher number began to wait first and wants both; it is not overtaken.
  const TaskId small = toy.add(toy.lane(), wait(1), {two}, {acquire(slots), release(slots)});
  const TaskId big = toy.add(toy.lane(), wait(1), {one}, {acquire(slots, 2), release(slots, 2)});
  const Timeline t = run(toy);
  CHECK(end_of(t, d) == 5 * second);
  CHECK(start_of(t, big) == 5 * second);
  CHECK(start_of(t, small) == 6 * second);
}

TEST_CASE("a task that waits for something else holds up nobody", "[simulate]") {
  // The read lacks a slot, which only the write gives back; the write needs the lock that the read
  // would also take.
  Toy toy;
  const TokenId slots = toy.builder.tokens("slots", 1);
  const LockId drive = toy.builder.lock("drive");
  const TaskId take = toy.add(toy.lane(), wait(2), {}, {acquire(slots)});
  const TaskId read =
      toy.add(toy.lane(), wait(1), {}, {acquire(slots), hold(drive), release(slots)});
  const TaskId write = toy.add(toy.lane(), wait(1), {take}, {hold(drive), release(slots)}, 1);
  const Timeline t = run(toy);
  CHECK(start_of(t, write) == 2 * second);
  CHECK(start_of(t, read) == 3 * second);
}

TEST_CASE("a lock runs ranks one after another and lets a rank join itself", "[simulate]") {
  Toy toy;
  const LockId drive = toy.builder.lock("drive");
  const LaneId zero = toy.lane(4, 0), one = toy.lane(4, 1), two = toy.lane(1, 2);
  const TaskId a = toy.add(zero, wait(4), {}, {hold(drive)}, 0);
  const TaskId b = toy.add(one, wait(1), {}, {hold(drive)}, 1);  // waits from 0
  const TaskId later = toy.add(two, wait(2));
  const TaskId c = toy.add(two, wait(1), {later}, {hold(drive)}, 2);  // waits from 2
  const TaskId soon = toy.add(toy.lane(), wait(3));
  const TaskId d = toy.add(zero, wait(2), {soon}, {hold(drive)}, 0);  // joins a at 3, until 5
  const TaskId e = toy.add(one, wait(3), {}, {hold(drive)}, 1);       // joins b at 5, until 8
  const Timeline t = run(toy);
  CHECK(start_of(t, a) == 0);
  CHECK(start_of(t, d) == 3 * second);
  CHECK(start_of(t, b) == 5 * second);
  CHECK(start_of(t, e) == 5 * second);
  CHECK(start_of(t, c) == 8 * second);
}

TEST_CASE("buffers live from the start of one task to the end of another", "[simulate]") {
  Toy toy;
  const PoolId pool = toy.builder.pool("host", {}, Bytes(10));
  const OwnerId owner = toy.builder.owner("test");
  const auto buffer = [&](double bytes) { return toy.builder.buffer(pool, owner, Bytes(bytes)); };
  const BufferId a = buffer(6), b = buffer(5), c = buffer(7);
  const LaneId lane = toy.lane(1);
  const TaskId first = toy.add(lane, wait(1), {}, {allocate(a)});
  const TaskId second_task = toy.add(lane, wait(1), {first}, {allocate(b), tidegate::free(a)});
  const TaskId third = toy.add(lane, wait(1), {second_task}, {allocate(c), tidegate::free(b)});
  toy.add(lane, wait(1), {third}, {tidegate::free(c)});
  const Timeline t = run(toy);
  // 6, then 6 + 5 = 11 > 10 at 1 s, then 5 + 7 = 12 at 2 s: a is gone before c comes.
  REQUIRE(t.pools.size() == 1);
  CHECK(t.pools[0].peak == 12);
  CHECK(t.pools[0].peak_at == 2 * second);
  CHECK(t.pools[0].peak_task == third);
  CHECK(t.pools[0].first_over == second_task);
}

TEST_CASE("a deadlock names the stuck tasks and what they wait for", "[simulate]") {
  Toy toy;
  SECTION("tokens that never come back") {
    const TokenId slots = toy.builder.tokens("slots", 1);
    toy.add(toy.lane(), wait(1), {}, {acquire(slots)});
    toy.add(toy.lane(), wait(1), {}, {acquire(slots)});
    CHECK_THAT(failure(toy), Containing("'task 1' waits for 1 of tokens slots, 0 left"));
  }
  SECTION("two lanes that wait for each other") {
    const LaneId left = toy.lane(), right = toy.lane();
    const TaskId a = toy.add(left, wait(1));
    const TaskId b = toy.add(right, wait(1), {a});
    toy.add(left, wait(1), {b});
    Plan plan = toy.finish();
    plan.after_list = {TaskId{2}, TaskId{0},
                       TaskId{1}};  // task 0 comes after task 2 of its own lane
    plan.tasks[1].first_after = 1, plan.tasks[2].first_after = 2;
    CHECK_THROWS_WITH(simulate(plan, toy.demands, toy.resources),
                      Containing("'task 0' waits for the end of 'task 2'"));
  }
}

TEST_CASE("a demand must name resources that exist", "[simulate]") {
  Toy toy;
  toy.add(toy.lane(), flow(1, {{ResourceId{3}, 1}}));
  CHECK_THAT(failure(toy), Containing("existing resource"));
}
