#include "sim/plan/check.hpp"

#include "tests/catch.hpp"

using namespace tidegate;

namespace {

// A plan of tasks without work on one lane each, unless a test says otherwise.
struct Draft {
  PlanBuilder builder;
  PoolId pool = builder.pool("host", {Tier::host, 0}, Bytes(100));
  OwnerId owner = builder.owner("test");
  BufferId buffer = builder.buffer(pool, owner, Bytes(10));
  TokenId slots = builder.tokens("slots", 2);
  LockId drive = builder.lock("drive"), other_drive = builder.lock("other drive");

  TaskId add(const char* name, std::initializer_list<TaskId> after = {},
             std::initializer_list<Effect> effects = {}) {
    return add_on(builder.lane("lane", 0), name, after, effects);
  }
  TaskId add_on(LaneId lane, const char* name, std::initializer_list<TaskId> after = {},
                std::initializer_list<Effect> effects = {}) {
    const std::vector<TaskId> list(after);
    return builder.join({name, lane}, list, std::vector(effects));
  }
  std::vector<std::string> faults() { return tidegate::faults(builder.finish(1, 1)); }
};

using Faults = std::vector<std::string>;

}  // namespace

TEST_CASE("a sound plan has no faults", "[check]") {
  Draft draft;
  const TaskId read =
      draft.add("read", {}, {allocate(draft.buffer), acquire(draft.slots, 2), hold(draft.drive)});
  const TaskId use = draft.add("use", {read});
  draft.add("drop", {use}, {tidegate::free(draft.buffer), release(draft.slots, 2)});
  CHECK(draft.faults() == Faults{});
}

TEST_CASE("a task may allocate a buffer and free it", "[check]") {
  Draft draft;
  draft.add("scratch", {}, {allocate(draft.buffer), tidegate::free(draft.buffer)});
  CHECK(draft.faults() == Faults{});
}

TEST_CASE("a cycle is named, lanes included", "[check]") {
  Draft draft;
  draft.builder.buffer(draft.pool, draft.owner, Bytes(0));
  const LaneId left = draft.builder.lane("left", 0), right = draft.builder.lane("right", 0);
  draft.add_on(left, "a");
  draft.add_on(right, "b");
  draft.add_on(left, "c");
  draft.add_on(right, "d");
  Plan plan = draft.builder.finish(1, 1);
  plan.buffers.clear();
  // a after d and b after c: each waits for the other lane's second task.
  plan.after_list = {TaskId{3}, TaskId{2}};
  plan.tasks[1].first_after = 1, plan.tasks[2].first_after = 2, plan.tasks[3].first_after = 2;
  const Faults seen = faults(plan);
  REQUIRE(seen.size() == 1);
  CHECK_THAT(seen[0], Containing("waits for") && Containing("order of lanes"));
}

TEST_CASE("a buffer that is allocated twice, or never, is named", "[check]") {
  Draft draft;
  SECTION("twice") {
    const TaskId a = draft.add("a", {}, {allocate(draft.buffer)});
    const TaskId b = draft.add("b", {a}, {allocate(draft.buffer)});
    draft.add("c", {b}, {tidegate::free(draft.buffer)});
    CHECK(draft.faults() == Faults{"task 1 'b' allocates buffer 0, as did task 0 'a'"});
  }
  SECTION("never, but freed") {
    draft.add("a", {}, {tidegate::free(draft.buffer)});
    CHECK(draft.faults() == Faults{"task 0 'a' frees buffer 0, which is never allocated"});
  }
  SECTION("never at all") {
    draft.add("a");
    CHECK(draft.faults() == Faults{"buffer 0 is never allocated"});
  }
}

TEST_CASE("a buffer that is freed twice, or never, is named", "[check]") {
  Draft draft;
  const TaskId a = draft.add("a", {}, {allocate(draft.buffer)});
  SECTION("twice") {
    const TaskId b = draft.add("b", {a}, {tidegate::free(draft.buffer)});
    draft.add("c", {b}, {tidegate::free(draft.buffer)});
    CHECK(draft.faults() == Faults{"task 2 'c' frees buffer 0, as did task 1 'b'"});
  }
  SECTION("never") {
    CHECK(draft.faults() == Faults{"task 0 'a' allocates buffer 0, which is never freed"});
  }
}

TEST_CASE("a free that only luck puts after the allocation is named", "[check]") {
  Draft draft;
  const TaskId root = draft.add("root");
  SECTION("no path") {
    draft.add("a", {root}, {allocate(draft.buffer)});
    draft.add("b", {root}, {tidegate::free(draft.buffer)});
    CHECK(draft.faults() ==
          Faults{"task 2 'b' frees buffer 0 without waiting for its allocation by task 1 'a'"});
  }
  SECTION("a path by dependencies") {
    const TaskId a = draft.add("a", {root}, {allocate(draft.buffer)});
    const TaskId between = draft.add("between", {root, a});
    draft.add("b", {root, between}, {tidegate::free(draft.buffer)});
    CHECK(draft.faults() == Faults{});
  }
  SECTION("a path by the order of a lane") {
    const LaneId lane = draft.builder.lane("lane", 0);
    draft.add_on(lane, "a", {root}, {allocate(draft.buffer)});
    const TaskId later = draft.add_on(lane, "later");
    draft.add("b", {later}, {tidegate::free(draft.buffer)});
    CHECK(draft.faults() == Faults{});
  }
}

TEST_CASE("tokens that are not given back are named", "[check]") {
  Draft draft;
  draft.add("a", {},
            {allocate(draft.buffer), tidegate::free(draft.buffer), acquire(draft.slots, 2),
             release(draft.slots)});
  CHECK(draft.faults() == Faults{"tokens of slots are taken 2 times and given back 1 times"});
}

TEST_CASE("a task that takes more tokens than exist is named", "[check]") {
  Draft draft;
  draft.add("a", {},
            {allocate(draft.buffer), tidegate::free(draft.buffer), acquire(draft.slots, 2),
             acquire(draft.slots), release(draft.slots, 3)});
  CHECK(draft.faults() == Faults{"task 0 'a' takes 3 tokens of slots, of which 2 exist"});
}

TEST_CASE("a task that holds two locks is named", "[check]") {
  Draft draft;
  draft.add("a", {},
            {allocate(draft.buffer), tidegate::free(draft.buffer), hold(draft.drive),
             hold(draft.other_drive)});
  CHECK(draft.faults() == Faults{"task 0 'a' holds two locks"});
}

TEST_CASE("a rank that marks other phases than the first is named", "[check]") {
  PlanBuilder builder;
  const LaneId lane = builder.lane("lane", 0);
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    builder.enter(0, Phase::forward);
    builder.mark(builder.join({"f", lane, rank}, {}), rank);
    builder.enter(0, rank == 0 ? Phase::backward : Phase::update);
    builder.mark(builder.join({"b", lane, rank}, {}), rank);
  }
  CHECK(faults(builder.finish(1, 2)) == Faults{"iteration 0 of rank 1 marks the phases forward "
                                               "update, and the first marks forward backward"});
}

TEST_CASE("a reference to nothing is named", "[check]") {
  Draft draft;
  draft.add("a", {}, {release(TokenId{7})});
  CHECK(draft.faults() == Faults{"task 0 names a buffer, tokens or a lock that does not exist"});
}
