// Plans on a device that is none (test_device.hpp).
#include "models/base/error.hpp"
#include "tests/validate/engine/lanes.hpp"
#include "tests/validate/engine/laws.hpp"
#include "tests/validate/engine/test_device.hpp"
#include "validate/engine/rig.hpp"

using namespace tidegate;
using namespace tidegate::literals;

namespace {

constexpr Place gpu0{Tier::gpu, 0}, gpu1{Tier::gpu, 1}, host0{Tier::host, 0};

constexpr Gemm gemm{.m = 64, .n = 32, .k = 16};

// Kernels make a tensor of 1 MB, which goes to the host, to a file, and comes back beside another
// of 2 MB.
Plan round_trip() {
  Lanes l;
  const PoolId memory = l.builder.pool("gpu0", gpu0, Bytes(1e8));
  const PoolId host = l.builder.pool("host", host0, Bytes(1e9));
  const OwnerId owner = l.builder.owner("tensors");
  const BufferId made = l.builder.buffer(memory, owner, Bytes(1e6)),
                 other = l.builder.buffer(memory, owner, Bytes(2e6)),
                 back = l.builder.buffer(memory, owner, Bytes(1e6)),
                 kept = l.builder.buffer(host, owner, Bytes(1e6));
  const TaskId kernels =
      l.add("kernels", Compute{0, {gemm, Elementwise{1_MB}, gemm}}, {}, {allocate(made)});
  const TaskId out =
      l.add("out", Copy{gpu0, host0, Bytes(1e6)}, {kernels}, {allocate(kept), free(made)});
  const TaskId write = l.add("write", FileIo{Direction::write, 0, host0, Bytes(1e6)}, {out});
  const TaskId adam = l.add("adam", AdamStep{0, 10000, DType::bf16}, {write}, {allocate(other)});
  const TaskId in =
      l.add("in", Copy{host0, gpu0, Bytes(1e6)}, {adam}, {allocate(back), free(kept)});
  l.add("more", Copy{host0, gpu0, Bytes(3e5)}, {in}, {free(back), free(other)});
  return l.builder.finish(1, 1);
}

}  // namespace

TEST_CASE("kernels, copies and memory of a GPU are the device's", "[executor][device]") {
  TestMachine machine(1);
  const Plan plan = round_trip();
  const Execution run = run_on(rig_of(machine), plan);
  check_laws(plan, run.timeline);
  const TestDevice& device = *machine.gpus[0];
  // Two products of 2 · 64 · 32 · 16, and copies of 1, 1 and 0.3 MB.
  CHECK(device.computed.value() == 2 * 65536);
  CHECK(device.streamed == 1_MB);
  CHECK(device.copied == 2'300'000);
  CHECK(device.from_pinned == device.copied);
  // 2 MB and 1 MB of the plan at once, and what the three copies' threads have: 1, 1 and 0.3 MB.
  CHECK(device.peak == 3'000'000 + 2'300'000);
  CHECK(machine.is_empty());
  CHECK(run.remarks.empty());
}

TEST_CASE("a pageable copy's end on the host is not pinned", "[executor][device]") {
  TestMachine machine(1);
  Lanes l;
  const PoolId host = l.builder.pool("host", host0, Bytes(1e9));
  const BufferId kept = l.builder.buffer(host, l.builder.owner("tensors"), Bytes(1e6));
  l.add("out", Copy{gpu0, host0, Bytes(1e6), Pinning::pageable}, {}, {allocate(kept)});
  const Plan plan = l.builder.finish(1, 1);
  run_on(rig_of(machine), plan);
  CHECK(machine.gpus[0]->copied == 1'000'000);
  CHECK(machine.gpus[0]->from_pinned == 0);
}

TEST_CASE("a device with less memory than its pool says stops the run", "[executor][device]") {
  TestMachine machine(1, 2'500'000);
  CHECK_THROWS_WITH(run_on(rig_of(machine), round_trip()),
                    Containing("pool gpu0") && Containing("no memory left"));
  CHECK(machine.is_empty());
}

TEST_CASE("a device that fails stops the run with task, GPU and reason", "[executor][device]") {
  TestMachine machine(1);
  machine.gpus[0]->fails = true;
  CHECK_THROWS_WITH(run_on(rig_of(machine), round_trip()),
                    Containing("task 'kernels 0' of rank 0, GPU 0 (test): an illegal address"));
  CHECK(machine.is_empty());
}

TEST_CASE("what real GPUs are not used for is refused before anything runs", "[executor][device]") {
  TestMachine machine(1);
  const auto alone = [](const Work& work) {
    Lanes l;
    l.add("work", work);
    return l.builder.finish(1, 1);
  };
  const auto refused = [&](const Work& work, const char* why) {
    CHECK_THROWS_AS(run_on(rig_of(machine), alone(work)), InputError);
    CHECK_THROWS_WITH(run_on(rig_of(machine), alone(work)),
                      Containing("task 'work 0' of rank 0") && Containing(why));
  };
  // Two members, GPUs 0 and 1; then two ranks, of which one is here.
  refused(Collective{CollectiveKind::all_reduce, Bytes(1e6), 2, 0, 2}, "uses GPU 1; this machine");
  refused(Collective{CollectiveKind::all_reduce, Bytes(1e6), 2, 0, 1, 1, 2},
          "has 2 ranks, of which the plan has 1");
  refused(Copy{gpu0, gpu1, Bytes(1e6)}, "uses GPU 1");
  refused(FileIo{Direction::write, 0, gpu1, Bytes(1e6)}, "uses GPU 1");
  Rig nowhere = rig_of(machine);
  nowhere.folders = {"/nowhere"};  // which would be refused as soon as a file is to be written
  CHECK_THROWS_WITH(run_on(nowhere, alone(FileIo{Direction::write, 0, gpu1, Bytes(1e6)})),
                    Containing("uses GPU 1"));
  refused(Compute{1, {gemm}}, "uses GPU 1; this machine has 1");
  refused(Copy{host0, gpu1, Bytes(1e6)}, "uses GPU 1");
  Lanes l;
  const PoolId memory = l.builder.pool("gpu1", gpu1, Bytes(1e8));
  const BufferId buffer = l.builder.buffer(memory, l.builder.owner("tensors"), Bytes(1e6));
  l.add("allocate", Delay{}, {}, {allocate(buffer)});
  CHECK_THROWS_WITH(run_on(rig_of(machine), l.builder.finish(1, 1)),
                    Containing("pool gpu1") && Containing("uses GPU 1"));
  Rig paced = rig_of(machine);
  paced.pace = Pace::paced;
  CHECK_THROWS_AS(run_on(paced, alone(Compute{0, {gemm}})), InputError);
  CHECK(machine.is_untouched());
}
