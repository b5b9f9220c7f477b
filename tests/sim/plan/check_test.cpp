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
  TaskId add_when(When when, const char* name, std::initializer_list<TaskId> after = {},
                  std::initializer_list<Effect> effects = {}) {
    const std::vector<TaskId> list(after);
    return builder.join({name, builder.lane("lane", 0), 0, -1, when}, list, std::vector(effects));
  }
  ChoiceId choice(Choice::Rule rule, TaskId watched) {
    const ChoiceId c = builder.choice(rule);
    builder.watch(c, watched);
    return c;
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
  CHECK(draft.faults() ==
        Faults{"task 0 names a buffer, tokens, a lock or a choice that does not exist"});
}

namespace {

// A tensor that is made, stored, and loaded again unless its store is not over when the load is
// due; a store that has not begun then is cancelled. Left to the test: who frees it.
struct Forwarding : Draft {
  ChoiceId forward = builder.choice(Choice::Rule::unfinished);
  ChoiceId cancel = builder.choice(Choice::Rule::unstarted);
  BufferId loaded = builder.buffer(pool, owner, Bytes(10));
  TaskId make = add("make", {}, {allocate(buffer)}), store{}, load{};

  void go(std::initializer_list<Effect> of_store, std::initializer_list<Effect> of_use) {
    store = add_when(When::no(cancel), "store", {make}, of_store);
    builder.watch(forward, store), builder.watch(cancel, store);
    const TaskId ask = add("ask", {make}, {decide(forward), decide(cancel)});
    load = add_when(When::no(forward), "load", {ask}, {allocate(loaded)});
    std::vector<Effect> effects(of_use);
    effects.push_back(tidegate::free(loaded, When::no(forward)));
    const TaskId after[] = {load};
    builder.join({"use", builder.lane("lane", 0)}, after, effects);
  }
};

}  // namespace

TEST_CASE("forwarding with cancellation is sound", "[check]") {
  Forwarding plan;
  // A store that is cancelled has not ended either, so that whoever forwards frees.
  plan.go({tidegate::free(plan.buffer, When::no(plan.forward))},
          {tidegate::free(plan.buffer, When::yes(plan.forward))});
  CHECK(plan.faults() == Faults{});
}

TEST_CASE("what follows a task that has not ended has not started", "[check]") {
  // A store of two halves: the choice to forward watches the second, the choice to cancel the
  // first. Cancelled and not forwarded is impossible, so the buffer is always freed.
  Draft draft;
  const ChoiceId forward = draft.builder.choice(Choice::Rule::unfinished);
  const ChoiceId cancel = draft.builder.choice(Choice::Rule::unstarted);
  const TaskId make = draft.add("make", {}, {allocate(draft.buffer)});
  const TaskId copy = draft.add_when(When::no(cancel), "copy", {make}, {});
  const bool follows = GENERATE(true, false);
  const TaskId write = draft.add_when(When::no(cancel), "write", {follows ? copy : make},
                                      {tidegate::free(draft.buffer, When::no(forward))});
  draft.builder.watch(cancel, copy), draft.builder.watch(forward, write);
  draft.add("use", {make},
            {decide(forward), decide(cancel), tidegate::free(draft.buffer, When::yes(forward))});
  // Two halves that do not follow each other are as independent as ever, and the second hangs on a
  // choice that it does not wait for.
  CHECK(draft.faults().empty() == follows);
}

TEST_CASE("a buffer that some outcome frees twice, or never, is named", "[check]") {
  Forwarding plan;
  SECTION("twice") {
    plan.go({tidegate::free(plan.buffer)}, {tidegate::free(plan.buffer, When::yes(plan.forward))});
    CHECK(plan.faults() == Faults{"task 4 'use' frees buffer 0, as did task 1 'store' when choice "
                                  "1 is no and choice 0 is yes"});
  }
  SECTION("never") {
    plan.go({tidegate::free(plan.buffer, When::no(plan.forward))}, {});
    CHECK(plan.faults() == Faults{"task 0 'make' allocates buffer 0, which is never freed when "
                                  "choice 1 is no and choice 0 is yes"});
  }
  SECTION("freed without an allocation") {
    plan.go({tidegate::free(plan.buffer, When::no(plan.forward))},
            {tidegate::free(plan.buffer, When::yes(plan.forward))});
    const ChoiceId other = plan.choice(Choice::Rule::unfinished, plan.make);
    const BufferId extra = plan.builder.buffer(plan.pool, plan.owner, Bytes(1));
    const TaskId ask = plan.add("ask", {}, {decide(other), allocate(extra, When::yes(other))});
    plan.add("drop", {ask}, {tidegate::free(extra)});
    CHECK(plan.faults() == Faults{"task 6 'drop' frees buffer 2, which is never allocated when "
                                  "choice 2 is no"});
  }
  SECTION("freed in one outcome only by luck after its allocation") {
    plan.go({tidegate::free(plan.buffer, When::no(plan.forward))},
            {tidegate::free(plan.buffer, When::yes(plan.forward))});
    const ChoiceId other = plan.choice(Choice::Rule::unfinished, plan.make);
    const BufferId extra = plan.builder.buffer(plan.pool, plan.owner, Bytes(1));
    const TaskId ask = plan.add("ask", {}, {decide(other)});
    const TaskId take = plan.add("take", {ask}, {allocate(extra)});
    plan.add("drop", {take}, {tidegate::free(extra, When::yes(other))});
    plan.add("lose", {ask}, {tidegate::free(extra, When::no(other))});
    CHECK(plan.faults() == Faults{"task 8 'lose' frees buffer 2 without waiting for its "
                                  "allocation by task 6 'take'"});
  }
}

TEST_CASE("a choice is decided by one task, and watches another", "[check]") {
  Draft draft;
  const TaskId a = draft.add("a", {}, {allocate(draft.buffer), tidegate::free(draft.buffer)});
  SECTION("by nobody") {
    draft.choice(Choice::Rule::unfinished, a);
    CHECK(draft.faults() == Faults{"choice 0 is never decided"});
  }
  SECTION("twice") {
    const ChoiceId c = draft.choice(Choice::Rule::unfinished, a);
    draft.add("b", {}, {decide(c)});
    draft.add("c", {}, {decide(c)});
    CHECK(draft.faults() == Faults{"task 2 'c' decides choice 0, as did task 1 'b'"});
  }
  SECTION("of itself") {
    const ChoiceId c = draft.builder.choice(Choice::Rule::unfinished);
    draft.builder.watch(c, draft.add("b", {}, {decide(c)}));
    CHECK(draft.faults() == Faults{"task 1 'b' decides choice 0, which watches it"});
  }
  SECTION("watching nobody") {
    draft.add("b", {}, {decide(draft.builder.choice(Choice::Rule::unfinished))});
    CHECK(draft.faults() == Faults{"choice 0 watches no task"});
  }
  SECTION("under a condition") {
    const ChoiceId c = draft.choice(Choice::Rule::unfinished, a);
    const ChoiceId d = draft.choice(Choice::Rule::unfinished, a);
    Effect second = decide(d);
    second.when = When::yes(c);
    draft.add("b", {}, {decide(c), second});
    CHECK(draft.faults() == Faults{"task 1 'b' takes a lock or a choice under a condition"});
  }
}

TEST_CASE("a task that hangs on a choice without waiting for it is named", "[check]") {
  Draft draft;
  const ChoiceId c =
      draft.builder.choice(GENERATE(Choice::Rule::unfinished, Choice::Rule::unstarted));
  const TaskId store =
      draft.add("store", {}, {allocate(draft.buffer), tidegate::free(draft.buffer)});
  draft.builder.watch(c, store);
  const TaskId ask = draft.add("ask", {}, {decide(c)});
  SECTION("only luck puts it after the decision") {
    draft.add_when(When::yes(c), "load");
    CHECK(draft.faults() ==
          Faults{"task 2 'load' hangs on choice 0 without waiting for task 1 'ask', which decides "
                 "it"});
  }
  SECTION("it comes after the decision") {
    draft.add_when(When::yes(c), "load", {draft.add("between", {ask})});
    CHECK(draft.faults() == Faults{});
  }
  SECTION("it comes right after the watched task, when the outcome can only be no") {
    draft.add_when(When::no(c), "drop", {store});
    CHECK(draft.faults() == Faults{});
  }
}

TEST_CASE("a task can be cancelled by whether it has begun, not by whether it is over", "[check]") {
  const auto rule = GENERATE(Choice::Rule::unfinished, Choice::Rule::unstarted);
  Draft draft;
  const ChoiceId c = draft.builder.choice(rule);
  draft.add("a", {}, {allocate(draft.buffer), tidegate::free(draft.buffer)});
  draft.builder.watch(c, draft.add_when(When::no(c), "store"));
  draft.add("ask", {}, {decide(c)});
  CHECK(draft.faults() ==
        (rule == Choice::Rule::unstarted
             ? Faults{}
             : Faults{"task 1 'store' hangs on choice 0 without waiting for task 2 'ask', which "
                      "decides it"}));
}

TEST_CASE("a task cannot wait for tokens by a choice that it decides", "[check]") {
  Draft draft;
  const TaskId a = draft.add("a", {}, {allocate(draft.buffer), tidegate::free(draft.buffer)});
  const ChoiceId c = draft.choice(Choice::Rule::unfinished, a);
  draft.add(
      "b", {},
      {decide(c), acquire(draft.slots, 1, When::no(c)), release(draft.slots, 1, When::no(c))});
  CHECK(draft.faults() == Faults{"task 1 'b' hangs on choice 0 without waiting for task 1 'b', "
                                 "which decides it"});
}

TEST_CASE("tokens are given back under the condition under which they are taken", "[check]") {
  Draft draft;
  const TaskId a = draft.add("a", {}, {allocate(draft.buffer), tidegate::free(draft.buffer)});
  const ChoiceId c = draft.choice(Choice::Rule::unfinished, a);
  const TaskId ask = draft.add("ask", {}, {decide(c)});
  const TaskId take = draft.add_when(When::yes(c), "take", {ask}, {acquire(draft.slots)});
  SECTION("of the task or of the effect") {
    draft.add("give", {take}, {release(draft.slots, 1, When::yes(c))});
    CHECK(draft.faults() == Faults{});
  }
  SECTION("or they are lost") {
    draft.add("give", {take}, {release(draft.slots, 1, When::no(c))});
    CHECK(draft.faults() ==
          Faults{"tokens of slots are taken 0 times and given back 1 times when choice 0 is no",
                 "tokens of slots are taken 1 times and given back 0 times when choice 0 is yes"});
  }
}
