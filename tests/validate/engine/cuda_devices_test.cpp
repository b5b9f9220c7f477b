// The executor on this machine's own GPUs, where it has any: what threads try and compare
// themselves (sums of collectives, contents of files) has to come out right.
#include "validate/cuda/cuda_devices.hpp"
#include <vector>

#include "models/base/error.hpp"
#include "tests/validate/engine/lanes.hpp"
#include "tests/validate/engine/laws.hpp"
#include "tests/validate/engine/test_device.hpp"
#include "validate/engine/rig.hpp"

using namespace tidegate;

namespace {

constexpr Place gpu0{Tier::gpu, 0}, gpu1{Tier::gpu, 1}, host{Tier::host, 0};

// Empty, with a warning, where fewer than `count` are there.
Devices devices(std::size_t count) {
  try {
    Devices all = cuda_devices();
    if (all.size() >= count) return all;
    WARN("SKIPPED: it takes " << count << " GPUs, and here are " << all.size());
  } catch (const MachineError& error) {
    WARN("SKIPPED: " << error.what());
  }
  return {};
}

Execution run(const Devices& devices, const Plan& plan) {
  const TestMachine none(0);
  Rig rig = rig_of(none);
  rig.devices = devices;
  Execution run = run_on(rig, plan);
  check_laws(plan, run.timeline);
  for (const std::string& remark : run.remarks) WARN(remark);
  return run;
}

}  // namespace

TEST_CASE("a GPU runs kernels and moves bytes to the host, to a file and back", "[device][gpu]") {
  const Devices here = devices(1);
  if (here.empty()) return;
  Lanes l;
  const TaskId kernels =
      l.add("kernels", Compute{0, {Gemm{.m = 256, .n = 256, .k = 256}, Elementwise{Bytes(1e7)}}});
  const TaskId out = l.add("out", Copy{gpu0, host, Bytes(3e7)}, {kernels});
  const TaskId in = l.add("in", Copy{host, gpu0, Bytes(3e7), Pinning::pageable}, {out});
  const TaskId write = l.add("write", FileIo{Direction::write, 0, gpu0, Bytes(3e7)}, {in});
  const std::vector after{write};  // the same item, so that it is what was written
  l.builder.add({"read", l.builder.lane("read", 0), 0, 3},
                FileIo{Direction::read, 0, gpu0, Bytes(3e7)}, after);
  CHECK_NOTHROW(run(here, l.builder.finish(1, 1)));
}

TEST_CASE("two GPUs copy to each other and do every collective", "[device][gpu]") {
  const Devices here = devices(2);
  if (here.empty()) return;
  Lanes l;
  l.add("there", Copy{gpu0, gpu1, Bytes(3e7)});
  l.add("back", Copy{gpu1, gpu0, Bytes(3e7)});
  if (const std::string why = here.teams->why_absent(); !why.empty()) {
    WARN("SKIPPED: no collectives: " << why);
  } else {
    for (const auto kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
          CollectiveKind::broadcast, CollectiveKind::all_to_all})
      l.add(name_of(kind), Collective{kind, Bytes(3e7), 2, 0, 2});
  }
  CHECK_NOTHROW(run(here, l.builder.finish(1, 2)));
}
