#include "sim/engine/simulate.hpp"
#include "sim/plan/check.hpp"
#include "sim/timeline/laws.hpp"

#include "tests/catch.hpp"
#include "tests/sim/engine/toy.hpp"

using namespace tidegate;
using toy::Toy;
using toy::wait;

namespace {

constexpr Instant second = 1'000'000'000'000;
using Rule = Choice::Rule;
using Texts = std::vector<std::string>;

// A sound plan and what happened, which breaks no law.
struct Ran {
  Plan plan;
  Timeline timeline;
  std::vector<Demand> demands;
  std::vector<Resource> resources;

  explicit Ran(Toy& toy)
      : plan(toy.finish()),
        timeline(simulate(plan, toy.demands, toy.resources)),
        demands(toy.demands),
        resources(toy.resources) {
    CHECK(faults(plan) == Texts{});
    CHECK(broken() == Texts{});
  }
  Texts broken() const { return broken_laws(plan, timeline, demands, resources); }
  bool is_skipped(TaskId t) const { return tidegate::is_skipped(plan, t, timeline); }
  // In seconds.
  double start(TaskId t) const { return to_seconds(timeline.start[index(t)]).value(); }
  double end(TaskId t) const { return to_seconds(timeline.end[index(t)]).value(); }
  double makespan() const { return to_seconds(timeline.makespan).value(); }
};

// An activation of 10 B on the GPU is made in 1 s and stored in `store_time`. At `trigger_at` its
// load is due: 2 s into 20 B of its own, unless the store is not over yet; then the consumer (1 s)
// takes the bytes that are still there. The store waits behind one of `ahead_time`, if any, and can
// be cancelled, or not.
struct Offload {
  Toy toy;
  PoolId gpu = toy.builder.pool("gpu", {Tier::gpu, 0}, Bytes(100));
  OwnerId owner = toy.builder.owner("activations");
  BufferId made = toy.builder.buffer(gpu, owner, Bytes(10));
  BufferId loaded = toy.builder.buffer(gpu, owner, Bytes(20));
  ChoiceId forward = toy.builder.choice(Rule::unfinished);
  TaskId store{}, trigger{}, load{}, consume{};

  Offload(double store_time, double trigger_at, bool can_cancel = false, double ahead_time = 0) {
    const LaneId stores = toy.lane(can_cancel ? 1 : 6), compute = toy.lane(), cpu = toy.lane();
    const TaskId make = toy.add(compute, wait(1), {}, {allocate(made)});
    if (ahead_time > 0) toy.add(stores, wait(ahead_time));
    std::vector<Effect> decisions = {decide(forward)};
    When store_when;
    if (can_cancel) {
      const ChoiceId cancel = toy.builder.choice(Rule::unstarted);
      store_when = When::no(cancel);
      decisions.push_back(decide(cancel));
    }
    store = toy.add(stores, wait(store_time), {make}, {tidegate::free(made, When::no(forward))}, 0,
                    store_when);
    toy.builder.watch(forward, store);
    if (can_cancel) {
      toy.builder.watch(static_cast<ChoiceId>(decisions.back().target), store);
    }
    const TaskId clock = toy.add(cpu, wait(trigger_at));
    trigger = toy.add(cpu, wait(0), {clock}, decisions);
    load = toy.add(toy.lane(), wait(2), {trigger}, {allocate(loaded)}, 0, When::no(forward));
    consume = toy.add(
        compute, wait(1), {load},
        {tidegate::free(made, When::yes(forward)), tidegate::free(loaded, When::no(forward))});
  }
};

std::string all(const Texts& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += text + "\n";
  return joined;
}

}  // namespace

TEST_CASE("a tensor whose store is over is loaded, and its memory free meanwhile", "[choices]") {
  Offload offload(2, 4);
  const Ran ran(offload.toy);
  // Made 0 - 1, stored 1 - 3, loaded 4 - 6, used 6 - 7.
  CHECK(ran.timeline.choices == std::vector<std::uint8_t>{0});
  CHECK_FALSE(ran.is_skipped(offload.load));
  CHECK(ran.end(offload.store) == 3);
  CHECK(ran.start(offload.load) == 4);
  CHECK(ran.end(offload.load) == 6);
  CHECK(ran.makespan() == 7);
  // 10 B until 3, nothing, 20 B from 4.
  CHECK(ran.timeline.pools[0].peak == 20);
  CHECK(ran.timeline.pools[0].peak_at == 4 * second);
}

TEST_CASE("a tensor whose store is not over is forwarded, and held for its consumer", "[choices]") {
  Offload offload(5, 4);
  const Ran ran(offload.toy);
  // Made 0 - 1, stored 1 - 6, load passes at 4, used 4 - 5.
  CHECK(ran.timeline.choices == std::vector<std::uint8_t>{1});
  CHECK(ran.is_skipped(offload.load));
  CHECK(ran.start(offload.load) == 4);
  CHECK(ran.end(offload.load) == 4);
  CHECK(ran.end(offload.consume) == 5);
  CHECK(ran.end(offload.store) == 6);
  CHECK(ran.makespan() == 6);
  // The loaded copy never exists.
  CHECK(ran.timeline.pools[0].peak == 10);
  CHECK(ran.timeline.pools[0].peak_at == 0);
}

TEST_CASE("a store that ends in the instant of the choice has ended", "[choices]") {
  Offload offload(3, 4);  // stored 1 - 4
  const Ran ran(offload.toy);
  CHECK(ran.timeline.choices == std::vector<std::uint8_t>{0});
  CHECK(ran.end(offload.load) == 6);
  // The store's 10 B are gone before the load's 20 B come.
  CHECK(ran.timeline.pools[0].peak == 20);
}

TEST_CASE("a store that has not begun is cancelled", "[choices]") {
  Offload offload(5, 4, true, 7);
  const TaskId next = offload.toy.add(LaneId{0}, wait(1));
  const Ran ran(offload.toy);
  // The drive is taken until 7; at 4 the load is due and the store forgotten. Used 4 - 5.
  CHECK(ran.timeline.choices == std::vector<std::uint8_t>{1, 1});
  CHECK(ran.is_skipped(offload.store));
  CHECK(ran.is_skipped(offload.load));
  CHECK(ran.end(offload.consume) == 5);
  // Its lane comes to it at 7 and goes on at once.
  CHECK(ran.start(offload.store) == 7);
  CHECK(ran.end(offload.store) == 7);
  CHECK(ran.start(next) == 7);
  CHECK(ran.timeline.pools[0].peak == 10);
}

TEST_CASE("a store that has begun is not cancelled", "[choices]") {
  Offload offload(5, 4, true, 3);
  const Ran ran(offload.toy);
  // Stored 3 - 8; at 4 the tensor is still there.
  CHECK(ran.timeline.choices == std::vector<std::uint8_t>{1, 0});
  CHECK_FALSE(ran.is_skipped(offload.store));
  CHECK(ran.end(offload.store) == 8);
  CHECK(ran.is_skipped(offload.load));
  CHECK(ran.end(offload.consume) == 5);
}

TEST_CASE("a store that would begin in the instant of the choice goes by task number",
          "[choices]") {
  // Both the store and the trigger start at 4: the store comes first in the plan.
  Offload offload(5, 4, true, 4);
  const Ran ran(offload.toy);
  CHECK(ran.timeline.choices == std::vector<std::uint8_t>{1, 0});
  CHECK(ran.end(offload.store) == 9);
}

TEST_CASE("a choice after its task is over says no", "[choices]") {
  Offload offload(5, 10, true, 3);  // stored 3 - 8
  const Ran ran(offload.toy);
  CHECK(ran.timeline.choices == std::vector<std::uint8_t>{0, 0});
  CHECK(ran.end(offload.consume) == 13);  // loaded 10 - 12
}

TEST_CASE("a skipped task holds its place in its lane and lets its successors go", "[choices]") {
  Toy toy;
  const LaneId lane = toy.lane(2), cpu = toy.lane();
  const ChoiceId choice = toy.builder.choice(Rule::unfinished);
  const TaskId trigger = toy.add(cpu, wait(0), {}, {decide(choice)});
  const TaskId slow = toy.add(cpu, wait(3));
  toy.builder.watch(choice, slow);
  const When never_mind = When::no(choice);  // slow has not ended at 0
  const TaskId a = toy.add(lane, wait(4));
  const TaskId b = toy.add(lane, wait(2));
  const TaskId full = toy.add(lane, wait(9), {trigger}, {}, 0, never_mind);  // turn at 2
  const TaskId held = toy.add(lane, wait(9), {slow}, {}, 0, never_mind);     // waits until 3
  const TaskId also = toy.add(lane, wait(9), {trigger}, {}, 0, never_mind);  // behind it
  const TaskId runs = toy.add(lane, wait(1), {trigger});                     // behind both
  const TaskId next = toy.add(toy.lane(), wait(1), {full});
  const Ran ran(toy);
  CHECK(ran.end(a) == 4);
  CHECK(ran.end(b) == 2);
  CHECK(ran.start(full) == 2);
  CHECK(ran.end(full) == 2);
  CHECK(ran.start(next) == 2);
  CHECK(ran.start(held) == 3);
  CHECK(ran.start(also) == 3);
  CHECK(ran.start(runs) == 3);
  CHECK(ran.makespan() == 4);
}

TEST_CASE("a skipped task takes no tokens and no lock and decides nothing", "[choices]") {
  Toy toy;
  const TokenId slots = toy.builder.tokens("slots", 1);
  const LockId drive = toy.builder.lock("drive");
  const ChoiceId first = toy.builder.choice(Rule::unfinished);
  const ChoiceId second_choice = toy.builder.choice(Rule::unfinished);
  const TaskId slow =
      toy.add(toy.lane(), wait(5), {}, {acquire(slots), release(slots), hold(drive)});
  toy.builder.watch(first, slow), toy.builder.watch(second_choice, slow);
  const TaskId trigger = toy.add(toy.lane(), wait(1), {}, {decide(first)});
  const TaskId skipped = toy.add(
      toy.lane(), wait(9), {trigger},
      {acquire(slots), release(slots), hold(drive), decide(second_choice)}, 1, When::no(first));
  const TaskId runs = toy.add(toy.lane(), wait(1), {skipped}, {}, 0, When::no(second_choice));
  const Ran ran(toy);
  // It does not wait for slow's slot and lock until 5; slow is not over at 1, but nobody asks.
  CHECK(ran.end(skipped) == 1);
  CHECK(ran.timeline.choices == std::vector<std::uint8_t>{1, 0});
  CHECK(ran.end(runs) == 2);
}

TEST_CASE("a task that waits for tokens has not started and can be cancelled", "[choices]") {
  Toy toy;
  const TokenId slots = toy.builder.tokens("slots", 2);
  const ChoiceId cancel = toy.builder.choice(Rule::unstarted);
  const LaneId stores = toy.lane(), cpu = toy.lane(2);
  toy.add(toy.lane(), wait(10), {}, {acquire(slots), release(slots)});
  const TaskId one = toy.add(cpu, wait(1)), two = toy.add(cpu, wait(2));
  // Wants both slots from 1 on, and holds up whoever wants one later.
  const TaskId store =
      toy.add(stores, wait(4), {one}, {acquire(slots, 2), release(slots, 2)}, 0, When::no(cancel));
  toy.builder.watch(cancel, store);
  const TaskId behind = toy.add(stores, wait(1));
  const TaskId small = toy.add(toy.lane(), wait(1), {two}, {acquire(slots), release(slots)});
  const TaskId three = toy.add(toy.lane(), wait(3));
  toy.add(cpu, wait(0), {three}, {decide(cancel)});
  const Ran ran(toy);
  CHECK(ran.is_skipped(store));
  CHECK(ran.end(store) == 3);
  CHECK(ran.start(behind) == 3);
  CHECK(ran.start(small) == 3);
}

TEST_CASE("a task may decide a choice and allocate by its outcome", "[choices]") {
  const bool is_late = GENERATE(false, true);
  Toy toy;
  const PoolId gpu = toy.builder.pool("gpu", {Tier::gpu, 0}, Bytes(100));
  const BufferId buffer = toy.builder.buffer(gpu, toy.builder.owner("x"), Bytes(10));
  const ChoiceId choice = toy.builder.choice(Rule::unfinished);
  const TaskId watched = toy.add(toy.lane(), wait(2));
  toy.builder.watch(choice, watched);
  const TaskId before = toy.add(toy.lane(), wait(is_late ? 3 : 1));
  toy.add(toy.lane(), wait(1), {before},
          {allocate(buffer, When::no(choice)), tidegate::free(buffer, When::no(choice)),
           decide(choice)});
  const Ran ran(toy);
  CHECK(ran.timeline.choices[0] == (is_late ? 0 : 1));
  CHECK(ran.timeline.pools[0].peak == (is_late ? 10 : 0));
}

TEST_CASE("tokens may hang on a choice", "[choices]") {
  Toy toy;
  const TokenId slots = toy.builder.tokens("slots", 1);
  const ChoiceId choice = toy.builder.choice(Rule::unfinished);
  const TaskId slow = toy.add(toy.lane(), wait(5), {}, {acquire(slots), release(slots)});
  toy.builder.watch(choice, slow);
  const TaskId trigger = toy.add(toy.lane(), wait(1), {}, {decide(choice)});
  const When when = GENERATE(When::yes(ChoiceId{0}), When::no(ChoiceId{0}));
  const TaskId use =
      toy.add(toy.lane(), wait(1), {trigger}, {acquire(slots, 1, when), release(slots, 1, when)});
  const Ran ran(toy);
  // The choice is yes: slow has the slot until 5.
  CHECK(ran.start(use) == (when.wants_yes() ? 5 : 1));
}

TEST_CASE("the laws see outcomes that contradict the times", "[choices]") {
  Offload offload(2, 4);  // stored 1 - 3, asked at 4: no
  Ran ran(offload.toy);
  SECTION("an outcome that was not") {
    ran.timeline.choices[0] = 1;
    CHECK_THAT(all(ran.broken()), Containing("'task 4' is skipped and takes time") &&
                                      Containing("choice 0 is yes, but task 1 'task 1' ends "
                                                 "before task 3 'task 3' decides it"));
  }
  SECTION("a store that ends later") {
    ran.timeline.end[index(offload.store)] = 5 * second;
    CHECK_THAT(all(ran.broken()), Containing("choice 0 is no, but task 1 'task 1' ends after"));
  }
  SECTION("no outcome") {
    ran.timeline.choices.clear();
    CHECK(ran.broken() == Texts{"the timeline has not one outcome for each choice"});
  }
}
