// Every kind of work on a rig, in plans made by hand: what sharing a device does to times.
#include <filesystem>

#include "models/base/error.hpp"
#include "sim/engine/simulate.hpp"
#include "tests/models/toy.hpp"
#include "tests/validate/engine/lanes.hpp"
#include "tests/validate/engine/laws.hpp"
#include "validate/engine/rig.hpp"
#include "validate/engine/scale.hpp"

using namespace tidegate;
using namespace tidegate::literals;

namespace {

// Two GPUs of 100 GFLOP/s whose links do 100 MB/s, a drive of 100 MB/s, 40 when mixed.
Machine slow_machine() {
  Gpu gpu = toy::gpu();
  gpu.peak_16 = 0.1_TFLOPs;
  gpu.h2d = gpu.d2h = BytesPerSecond(1e8);
  StoragePath drive = toy::drive();
  drive.read = drive.write = BytesPerSecond(1e8);
  drive.read_mixed = drive.write_mixed = BytesPerSecond(4e7);
  Host host = toy::host();
  host.adam_rate = 1e7;
  host.cast_rate = 1e7;
  Fabric fabric = toy::fabric();
  fabric.per_gpu = BytesPerSecond(1e8);
  return toy::machine({gpu, gpu}, drive, fabric, host);
}

Rig slow_rig(Pace pace) {
  return {.machine = slow_machine(),
          .pace = pace,
          .folders = {std::filesystem::temp_directory_path().string()}};
}

constexpr Place gpu0{Tier::gpu, 0}, host0{Tier::host, 0};

double seconds(const Timeline& timeline, TaskId task) {
  return to_seconds(timeline.end[index(task)] - timeline.start[index(task)]).value();
}

// Whether the host woke every thread in time, so that works met that were to meet.
bool was_calm(const Execution& run) {
  Instant late = 0;
  for (const Instant l : run.lateness) late += l;
  if (late < 5'000'000'000) return true;
  WARN("inconclusive: threads were " << to_seconds(late).value() << " s late");
  return false;
}

// A plan with a work of each kind, some after others, with buffers that copies use.
Plan all_kinds() {
  Lanes l;
  const PoolId memory = l.builder.pool("gpu0", gpu0, Bytes(1e8));
  const PoolId pinned = l.builder.pool("host", host0, Bytes(1e8));
  const OwnerId owner = l.builder.owner("tensors");
  const BufferId on_gpu = l.builder.buffer(memory, owner, Bytes(1e6));
  const BufferId on_host = l.builder.buffer(pinned, owner, Bytes(1e6));
  const TaskId kernels = l.add(
      "kernels", Compute{0, {Gemm{64, 64, 64}, Attention{1, 2, 2, 32, 32, 16}, Elementwise{1_MB}}},
      {}, {allocate(on_gpu)});
  const TaskId out =
      l.add("out", Copy{gpu0, host0, Bytes(1e6)}, {kernels}, {allocate(on_host), free(on_gpu)});
  const TaskId write = l.add("write", FileIo{Direction::write, 0, host0, Bytes(1e6)}, {out});
  l.add("read", FileIo{Direction::read, 0, host0, Bytes(2e6)}, {});
  const TaskId adam = l.add("adam", AdamStep{0, 100000, DType::bf16}, {write}, {free(on_host)});
  l.add("cast", Cast{0, 100000, DType::fp32, DType::bf16}, {adam});
  l.add("adam 32", AdamStep{0, 50000, DType::fp32}, {});
  l.add("cast back", Cast{0, 50001, DType::fp16, DType::fp32}, {});
  for (const auto kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce,
        CollectiveKind::broadcast, CollectiveKind::all_to_all}) {
    l.add("collective", Collective{kind, Bytes(400000), 2, 0, 2}, {kernels});
  }
  l.add("wait", Delay{Seconds(0.005)}, {kernels});
  return l.builder.finish(1, 2);
}

}  // namespace

TEST_CASE("every kind of work runs, natively and paced", "[executor][works]") {
  const Plan plan = all_kinds();
  for (const Pace pace : {Pace::native, Pace::paced})
    check_laws(plan, execute(plan, slow_rig(pace)));
  const Rig paced = slow_rig(Pace::paced);
  const auto demands = price(plan, paced.machine);
  const Timeline timeline = execute(plan, paced);
  CHECK(broken_laws(plan, timeline, demands, paced.machine.resources()).empty());
}

TEST_CASE("copies that meet on a link take twice as long, in opposite directions not",
          "[executor][works]") {
  // 4 MB at 100 MB/s: 40 ms alone, 80 ms when two share.
  Lanes l;
  const TaskId first = l.add("first", Copy{gpu0, host0, Bytes(4e6)});
  const TaskId second = l.add("second", Copy{gpu0, host0, Bytes(4e6)});
  const TaskId other = l.add("other", Copy{host0, gpu0, Bytes(4e6)});
  const Plan plan = l.builder.finish(1, 1);
  const Execution run = run_on(slow_rig(Pace::paced), plan);
  CHECK(to_seconds(run.timeline.makespan).value() >= 0.08);  // the link, whatever the host does
  if (!was_calm(run)) return;
  // One of 62 parts is the grain.
  CHECK(seconds(run.timeline, first) == Approx(0.08).margin(0.008));
  CHECK(seconds(run.timeline, second) == Approx(0.08).margin(0.008));
  CHECK(seconds(run.timeline, other) == Approx(0.04).margin(0.006));
}

TEST_CASE("a drive that reads and writes at once works at its mixed rates", "[executor][works]") {
  // 2 MB each way: alone 20 ms; mixed, 2 MB / 40 MB/s each of one budget: 100 ms for both.
  Lanes l;
  const TaskId read = l.add("read", FileIo{Direction::read, 0, host0, Bytes(2e6)});
  const TaskId write = l.add("write", FileIo{Direction::write, 0, host0, Bytes(2e6)});
  const Plan plan = l.builder.finish(1, 1);
  const Execution run = run_on(slow_rig(Pace::paced), plan);
  CHECK(to_seconds(run.timeline.makespan).value() >= 0.04);  // one after the other, both pure
  if (!was_calm(run)) return;
  // The last part may find the other direction gone.
  CHECK(seconds(run.timeline, read) == Approx(0.1).margin(0.01));
  CHECK(seconds(run.timeline, write) == Approx(0.1).margin(0.01));
}

TEST_CASE("a scaled plan has that part of every size", "[executor][works]") {
  const Plan plan = all_kinds();
  const Plan half = scaled(plan, 0.5);
  REQUIRE(half.size() == plan.size());
  for (std::size_t w = 0; w < plan.works.size(); ++w) {
    if (const auto* copy = std::get_if<Copy>(&plan.works[w])) {
      CHECK(std::get<Copy>(half.works[w]).bytes == copy->bytes / 2);
    }
    if (const auto* adam = std::get_if<AdamStep>(&plan.works[w])) {
      CHECK(std::get<AdamStep>(half.works[w]).parameters == adam->parameters / 2);
    }
  }
  CHECK(half.buffers[0].bytes == 500000);
  CHECK(half.pools[0].capacity.value() == Approx(5e7).epsilon(1e-6));
}
