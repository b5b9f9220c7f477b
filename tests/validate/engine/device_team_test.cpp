// Collectives and copies between GPUs that are none (test_device.hpp), which sum and copy for real.
#include "models/base/error.hpp"
#include "tests/validate/engine/lanes.hpp"
#include "tests/validate/engine/laws.hpp"
#include "tests/validate/engine/test_device.hpp"
#include "validate/engine/exchange.hpp"
#include "validate/engine/rig.hpp"

using namespace tidegate;

namespace {

using Kind = CollectiveKind;
constexpr Place gpu0{Tier::gpu, 0}, gpu1{Tier::gpu, 1};

Plan alone(const Work& work) {
  Lanes l;
  l.add("work", work);
  return l.builder.finish(1, 1);
}

}  // namespace

TEST_CASE("parts of a collective are whole 16 bytes", "[device]") {
  // 1,000,000 over 4 is 250,000, 15,625 times 16: 62,500 numbers.
  CHECK(exchange_of({Kind::all_reduce, Bytes(1e6), 4, 0, 4}).part == 62'500);
  // 1,000,001 over 3 is 333,333.67, up to 333,344 bytes: 83,336 numbers.
  const Exchange odd = exchange_of({Kind::all_gather, Bytes(1e6 + 1), 3, 0, 3});
  CHECK(odd.part == 83'336);
  CHECK(odd.sent() == 83'336);
  CHECK(odd.received() == 3 * 83'336);
  CHECK(members_of({Kind::all_reduce, Bytes(1e6), 3, 1, 3, 2}) ==
        std::vector<std::uint16_t>{1, 3, 5});
}

TEST_CASE("numbers of a trial are what each collective makes of them", "[device]") {
  const auto received = [](Kind kind, std::int64_t member, std::int64_t i) {
    return 64 * static_cast<double>(trial_received({kind, 2, 100}, member, i));
  };
  // Member 0 sends 64 + i mod 61, member 1 64 + (i + 7) mod 61, in 64ths.
  CHECK(received(Kind::all_reduce, 0, 0) == 64 + 64 + 7);
  CHECK(received(Kind::all_reduce, 1, 60) == 64 + 60 + 64 + 6);
  // Place 0 of member 1 is place 100 of the whole: 100 mod 61 is 39, 107 mod 61 is 46.
  CHECK(received(Kind::reduce_scatter, 1, 0) == 64 + 39 + 64 + 46);
  // Place 101 is place 1 of what member 1 sends.
  CHECK(received(Kind::all_gather, 0, 101) == 64 + 8);
  CHECK(received(Kind::broadcast, 1, 62) == 64 + 1);
  // Place 100 of member 1 is place 100 of member 1; place 0 of it is place 100 of member 0.
  CHECK(received(Kind::all_to_all, 1, 100) == 64 + 46);
  CHECK(received(Kind::all_to_all, 1, 0) == 64 + 39);
}

TEST_CASE("a collective is done by all GPUs of its group, each in memory of its own",
          "[executor][device]") {
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::broadcast,
                          Kind::all_to_all}) {
    INFO(name_of(kind));
    TestMachine machine(4);
    Lanes l;
    l.add("all", Collective{kind, Bytes(2e6), 4, 0, 4});
    l.add("odd", Collective{kind, Bytes(1e6), 2, 1, 2, 2});
    const Plan plan = l.builder.finish(1, 4);
    check_laws(plan, run_on(rig_of(machine), plan).timeline);
    // Each is tried once and done once; the trial looks at every member's numbers.
    REQUIRE(machine.teams->runs.size() == 4);
    int of_all = 0, of_odd = 0;
    for (const TestTeams::Run& run : machine.teams->runs) {
      const bool is_all = run.gpus.size() == 4;
      (is_all ? of_all : of_odd) += 1;
      CHECK(run.gpus ==
            (is_all ? std::vector<std::uint16_t>{0, 1, 2, 3} : std::vector<std::uint16_t>{1, 3}));
      CHECK(run.kind == kind);
      const std::size_t whole = is_all ? 2'000'000 : 1'000'000, part = 500'000;
      CHECK(run.sent == (kind == Kind::all_gather ? part : whole));
      CHECK(run.received == (kind == Kind::reduce_scatter ? part : whole));
    }
    CHECK(of_all == 2);
    CHECK(of_odd == 2);
    CHECK(machine.is_empty());
  }
}

TEST_CASE("a GPU that received other numbers stops the run before its first task",
          "[executor][device]") {
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::broadcast,
                          Kind::all_to_all}) {
    TestMachine machine(3);
    machine.teams->lazy = 2;
    const Plan plan = alone(Collective{kind, Bytes(1e6), 2, 1, 2});
    CHECK_THROWS_WITH(run_on(rig_of(machine), plan),
                      Containing("GPU 2 (test), member 1 of 2, received 0 in place 0") &&
                          Containing(name_of(kind)));
    CHECK(machine.is_empty());
  }
}

TEST_CASE("a collective that fails names task, GPUs and reason", "[executor][device]") {
  TestMachine machine(2);
  machine.teams->fails_after = 1;  // the trial
  CHECK_THROWS_WITH(
      run_on(rig_of(machine), alone(Collective{Kind::all_reduce, Bytes(1e6), 2, 0, 2})),
      Containing("task 'work 0' of rank 0, GPUs 0, 1 (test): a peer is gone"));
  CHECK(machine.is_empty());
}

TEST_CASE("without NCCL a plan with collectives is refused before memory is taken",
          "[executor][device]") {
  TestMachine machine(2);
  machine.teams->why = "libnccl.so.2 is not installed";
  const Plan plan = alone(Collective{Kind::all_reduce, Bytes(1e6), 2, 0, 2});
  CHECK_THROWS_AS(run_on(rig_of(machine), plan), MachineError);
  CHECK_THROWS_WITH(run_on(rig_of(machine), plan),
                    Containing("task 'work 0' of rank 0 is a collective between GPUs, which needs "
                               "NCCL: libnccl.so.2 is not installed"));
  Rig none = rig_of(machine);
  none.devices.teams = nullptr;
  CHECK_THROWS_AS(run_on(none, plan), MachineError);
  CHECK(machine.is_untouched());
  // A collective of one rank is nothing, and other works need none.
  const Collective of_one{Kind::all_reduce, Bytes(1e6), 1, 0, 1};
  CHECK_NOTHROW(run_on(none, alone(of_one)));
  CHECK_NOTHROW(run_on(none, alone(Copy{gpu0, gpu1, Bytes(1e6)})));
}

TEST_CASE("copies between GPUs have both ends where they belong", "[executor][device]") {
  TestMachine machine(2);
  PlanBuilder builder;
  const LaneId lane = builder.lane("links", 0);
  const auto add = [&](Place from, Place to, double bytes, std::vector<Effect> effects = {}) {
    return builder.add({"copy", lane, 0}, Copy{from, to, Bytes(bytes)}, {}, effects);
  };
  const OwnerId owner = builder.owner("tensors");
  const PoolId here = builder.pool("gpu0", gpu0, Bytes(1e8)),
               there = builder.pool("gpu1", gpu1, Bytes(1e8));
  const BufferId from = builder.buffer(here, owner, Bytes(5e5)),
                 to = builder.buffer(there, owner, Bytes(5e5));
  // One lane, whose thread has memory on both: 1 MB one way, 2 MB back, 3 MB within one.
  add(gpu0, gpu1, 1e6);
  add(gpu1, gpu0, 2e6);
  add(gpu1, gpu1, 3e6, {allocate(from)});
  add(gpu0, gpu1, 5e5, {free(from), allocate(to)});
  add(gpu0, gpu1, 1e5, {free(to)});
  const Plan plan = builder.finish(1, 2);
  const Execution run = run_on(rig_of(machine), plan);
  check_laws(plan, run.timeline);
  CHECK(machine.gpus[0]->sent == std::map<std::uint16_t, std::size_t>{{1, 1'600'000}});
  CHECK(machine.gpus[1]->sent == std::map<std::uint16_t, std::size_t>{{0, 2'000'000}});
  CHECK(machine.gpus[1]->copied == 3'000'000);
  // Out 1 and in 2 MB, and the buffer of 0.5; out 3 and in 3 MB, and the other buffer.
  CHECK(machine.gpus[0]->peak == 3'500'000);
  CHECK(machine.gpus[1]->peak == 6'500'000);
  CHECK(machine.gpus[0]->admitted == std::set<std::uint16_t>{1});
  CHECK(machine.gpus[1]->admitted == std::set<std::uint16_t>{0});
  CHECK(run.remarks.empty());
  CHECK(machine.is_empty());
}

TEST_CASE("GPUs that do not reach each other copy through the host, and it is told",
          "[executor][device]") {
  TestMachine machine(2);
  machine.gpus[1]->is_apart = true;
  const Execution run = run_on(rig_of(machine), alone(Copy{gpu0, gpu1, Bytes(1e6)}));
  REQUIRE(run.remarks.size() == 1);
  CHECK_THAT(run.remarks[0], Containing("from GPU 0 to GPU 1 went through the host"));
}

TEST_CASE("a copy between GPUs that fails names task and both", "[executor][device]") {
  TestMachine machine(2);
  machine.gpus[0]->fails = true;
  CHECK_THROWS_WITH(run_on(rig_of(machine), alone(Copy{gpu0, gpu1, Bytes(1e6)})),
                    Containing("task 'work 0' of rank 0, GPUs 0, 1 (test): the link is down"));
  CHECK(machine.is_empty());
}
