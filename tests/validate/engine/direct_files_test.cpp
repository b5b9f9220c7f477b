// Files straight to and from the memory of GPUs that are none (test_device.hpp), and ways around.
#include <string>
#include <vector>

#include "models/base/error.hpp"
#include "tests/validate/engine/laws.hpp"
#include "tests/validate/engine/test_device.hpp"
#include "validate/engine/gpu_files.hpp"
#include "validate/engine/rig.hpp"

using namespace tidegate;

namespace {

constexpr Place gpu1{Tier::gpu, 1};
constexpr std::int64_t mib = 1 << 20;
constexpr std::int64_t pages = 5'001'216;  // 5 MB in whole pages, 1221 of them

FileIo file(Direction direction) {
  return {.direction = direction,
          .path = 0,
          .memory = gpu1,
          .bytes = Bytes(5e6),
          .block = Bytes(1.0 * mib),
          .queue_depth = 2};
}

// 5 MB leave GPU 1 for a file and come back.
Plan there_and_back() {
  PlanBuilder builder;
  constexpr std::int32_t item = 3;
  const std::vector out{
      builder.add({"store", builder.lane("store", 0), 0, item}, file(Direction::write), {})};
  builder.add({"load", builder.lane("load", 0), 0, item}, file(Direction::read), out);
  return builder.finish(1, 1);
}

}  // namespace

TEST_CASE("a file goes straight to the memory of its GPU, as much at once as is under way",
          "[executor][device]") {
  TestMachine machine(2);
  Rig rig = rig_of(machine);
  rig.pages_per_check = 64;
  const Plan plan = there_and_back();
  const Execution run = run_on(rig, plan);
  check_laws(plan, run.timeline);
  CHECK(machine.files->written == pages);
  CHECK(machine.files->read == pages);
  // Two blocks of 1 MiB at once, and what is left of 5,001,216.
  constexpr std::size_t rest = pages - 4 * mib;
  CHECK(machine.files->calls ==
        std::vector<std::size_t>{2 * mib, 2 * mib, rest, 2 * mib, 2 * mib, rest});
  // One page of 64 of 1221, 20 of them, is marked on the way out and looked at on the way in.
  CHECK(machine.gpus[1]->pieces == 2 * 20);
  // What leaves are the host's ordinary numbers, put there before the first task.
  CHECK(machine.gpus[1]->copied == pages);
  CHECK(machine.gpus[0]->peak == 0);
  CHECK(run.remarks.empty());
  CHECK(machine.is_empty());
}

TEST_CASE("bytes that come straight are compared with those that were written",
          "[executor][device]") {
  TestMachine machine(2);
  machine.files->corrupts = true;
  CHECK_THROWS_WITH(run_on(rig_of(machine), there_and_back()),
                    Containing("task 'load 3' of rank 0, storage path") &&
                        Containing("not those that were written"));
  CHECK(machine.is_empty());
}

TEST_CASE("without cuFile files go through pinned host memory, and it is told",
          "[executor][device]") {
  TestMachine machine(2);
  SECTION("no library") { machine.files->why = "libcufile.so.0 is not installed"; }
  SECTION("no file system for it") { machine.files->why_not_open = "error 5030"; }
  const std::string why = machine.files->why + machine.files->why_not_open;
  const Plan plan = there_and_back();
  const Execution run = run_on(rig_of(machine), plan);
  check_laws(plan, run.timeline);
  REQUIRE(run.remarks.size() == 1);
  CHECK_THAT(run.remarks[0], Containing("through pinned host memory") && Containing(why));
  CHECK(machine.files->calls.empty());
  // The numbers that are there before the first task; then out, and in.
  CHECK(machine.gpus[1]->copied == 3 * pages);
  CHECK(machine.gpus[1]->from_pinned == 3 * pages);
  CHECK(machine.is_empty());
}

TEST_CASE("bytes that come through the host are compared too", "[executor][device]") {
  TestMachine machine(2);
  machine.files->why = "libcufile.so.0 is not installed";
  Rig rig = rig_of(machine);
  rig.faults = {{0, Direction::read, {.at = 1, .kind = rig::IoFault::Kind::corrupt}}};
  CHECK_THROWS_WITH(run_on(rig, there_and_back()), Containing("task 'load 3' of rank 0") &&
                                                       Containing("not those that were written"));
}

TEST_CASE("compatibility mode and bytes that nobody counts are told", "[executor][device]") {
  const auto remark = [](auto&& change) {
    TestMachine machine(2);
    change(*machine.files);
    const Execution run = run_on(rig_of(machine), there_and_back());
    CHECK(machine.files->read == pages);
    return run.remarks.empty() ? std::string() : run.remarks[0];
  };
  CHECK_THAT(remark([](TestFiles& f) { f.expected = FileWay::through_host; }),
             Containing("compatibility mode"));
  CHECK_THAT(remark([](TestFiles& f) { f.expected = FileWay::not_told; }),
             Containing("Nothing counts"));
  CHECK_THAT(remark([](TestFiles& f) { f.counts = false; }), Containing("Nothing counts"));
  // 2 · 5,001,216 bytes are 9.54 MiB, of which half are counted.
  CHECK_THAT(remark([](TestFiles& f) { f.counted_part = 0.5; }),
             Containing("Of 9.5 MiB") && Containing("counted 4.8"));
}

TEST_CASE("a driver's counters, in whole MiB and of everybody, speak against less than nine tenths",
          "[device]") {
  const auto is_doubted = [](std::int64_t counted) {
    return !direct_remark(FileWay::direct, 100 * mib, counted).empty();
  };
  CHECK_FALSE(is_doubted(100 * mib));
  CHECK_FALSE(is_doubted(500 * mib));
  CHECK_FALSE(is_doubted(89 * mib));  // 90 of 100, less the MiB that is not full yet
  CHECK(is_doubted(88 * mib));
  CHECK(is_doubted(0));
}
