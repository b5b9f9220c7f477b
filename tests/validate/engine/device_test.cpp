// Plans on a device that is none: it has memory of its own, and knows what was asked of it. What a
// real one adds is speed.
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "models/base/error.hpp"
#include "tests/models/toy.hpp"
#include "tests/validate/engine/lanes.hpp"
#include "tests/validate/engine/laws.hpp"
#include "validate/engine/rig.hpp"

using namespace tidegate;
using namespace tidegate::literals;

namespace {

constexpr Place gpu0{Tier::gpu, 0}, gpu1{Tier::gpu, 1}, host0{Tier::host, 0};

class TestDevice final : public Device {
 public:
  explicit TestDevice(std::int64_t capacity = 1'000'000'000) : capacity_(capacity) {}

  std::string name() const override { return "test"; }
  std::byte* allocate(std::int64_t bytes) override {
    const std::scoped_lock lock(mutex);
    if (used + bytes > capacity_) throw MachineError("the device has no memory left");
    std::vector<std::byte> memory(static_cast<std::size_t>(bytes));
    std::byte* const at = memory.data();
    blocks_.emplace(at, std::move(memory));
    used += bytes;
    peak = std::max(peak, used);
    return at;
  }
  void free(std::byte* at) override {
    const std::scoped_lock lock(mutex);
    used -= static_cast<std::int64_t>(blocks_.at(at).size());
    blocks_.erase(at);
  }
  void pin(std::span<std::byte> pages) override {
    const std::scoped_lock lock(mutex);
    CHECK(pinned_.emplace(pages.data(), pages.size()).second);
  }
  void unpin(std::span<std::byte> pages) override {
    const std::scoped_lock lock(mutex);
    CHECK(pinned_.erase(pages.data()) == 1);
  }
  std::unique_ptr<DeviceSeat> sit_down(std::span<const Kernel> kernels) override;

  bool is_mine(std::span<const std::byte> bytes) const { return is_within(bytes, blocks_); }
  bool is_pinned(std::span<const std::byte> bytes) const {
    const auto after = pinned_.upper_bound(const_cast<std::byte*>(bytes.data()));
    if (after == pinned_.begin()) return false;
    const auto& [at, size] = *std::prev(after);
    return bytes.data() + bytes.size() <= at + size;
  }
  bool has_pinned() const { return !pinned_.empty(); }

  std::mutex mutex;
  std::int64_t used = 0, peak = 0;
  std::size_t copied = 0, from_pinned = 0, between_wrong = 0;
  Flops computed;
  Bytes streamed;
  bool fails = false;

 private:
  std::int64_t capacity_;
  std::map<std::byte*, std::vector<std::byte>> blocks_;
  std::map<std::byte*, std::size_t> pinned_;

  template <class Blocks>
  static bool is_within(std::span<const std::byte> bytes, const Blocks& blocks) {
    const auto after = blocks.upper_bound(const_cast<std::byte*>(bytes.data()));
    if (after == blocks.begin()) return false;
    const auto& [at, memory] = *std::prev(after);
    return bytes.data() + bytes.size() <= at + memory.size();
  }
};

class TestSeat final : public DeviceSeat {
 public:
  TestSeat(TestDevice& device, std::span<const Kernel> kernels)
      : device_(device), kernels_(kernels.begin(), kernels.end()) {}

  void copy(std::span<const std::byte> from, std::span<std::byte> to) override {
    const std::scoped_lock lock(device_.mutex);
    const bool from_mine = device_.is_mine(from), to_mine = device_.is_mine(to);
    if (from.size() != to.size() || from_mine == to_mine) ++device_.between_wrong;
    if (device_.is_pinned(from_mine ? std::span<const std::byte>(to) : from))
      device_.from_pinned += from.size();
    std::copy(from.begin(), from.end(), to.begin());
    device_.copied += from.size();
  }
  void run(std::span<const Kernel> kernels) override {
    const std::scoped_lock lock(device_.mutex);
    if (device_.fails) throw MachineError("an illegal address was used");
    for (const Kernel& kernel : kernels) {
      CHECK(std::ranges::find(kernels_, kernel) != kernels_.end());  // it was told of
      if (const auto* stream = std::get_if<Elementwise>(&kernel)) {
        device_.streamed += stream->bytes;
      } else {
        device_.computed += flops_of(kernel);
      }
    }
  }

 private:
  TestDevice& device_;
  std::vector<Kernel> kernels_;
};

std::unique_ptr<DeviceSeat> TestDevice::sit_down(std::span<const Kernel> kernels) {
  return std::make_unique<TestSeat>(*this, kernels);
}

Rig rig_of(Devices devices) {
  return {
      .machine = toy::machine({toy::gpu(), toy::gpu()}, toy::drive(), toy::fabric(), toy::host()),
      .pace = Pace::native,
      .folders = {std::filesystem::temp_directory_path().string()},
      .faults = {},
      .devices = std::move(devices)};
}

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
  const auto device = std::make_shared<TestDevice>();
  const Plan plan = round_trip();
  check_laws(plan, execute(plan, rig_of({device})));
  // Two products of 2 · 64 · 32 · 16, and copies of 1, 1 and 0.3 MB.
  CHECK(device->computed.value() == 2 * 65536);
  CHECK(device->streamed == 1_MB);
  CHECK(device->copied == 2'300'000);
  CHECK(device->between_wrong == 0);
  CHECK(device->from_pinned == device->copied);
  // 2 MB and 1 MB of the plan at once, and what the three copies' threads have: 1, 1 and 0.3 MB.
  CHECK(device->peak == 3'000'000 + 2'300'000);
  CHECK(device->used == 0);
  CHECK_FALSE(device->has_pinned());
}

TEST_CASE("a pageable copy's end on the host is not pinned", "[executor][device]") {
  const auto device = std::make_shared<TestDevice>();
  Lanes l;
  const PoolId host = l.builder.pool("host", host0, Bytes(1e9));
  const BufferId kept = l.builder.buffer(host, l.builder.owner("tensors"), Bytes(1e6));
  l.add("out", Copy{gpu0, host0, Bytes(1e6), Pinning::pageable}, {}, {allocate(kept)});
  const Plan plan = l.builder.finish(1, 1);
  execute(plan, rig_of({device}));
  CHECK(device->copied == 1'000'000);
  CHECK(device->from_pinned == 0);
}

TEST_CASE("a device with less memory than its pool says stops the run", "[executor][device]") {
  const auto device = std::make_shared<TestDevice>(2'500'000);
  CHECK_THROWS_WITH(execute(round_trip(), rig_of({device})),
                    Containing("pool gpu0") && Containing("no memory left"));
  CHECK(device->used == 0);
  CHECK_FALSE(device->has_pinned());
}

TEST_CASE("a device that fails stops the run with its reason", "[executor][device]") {
  const auto device = std::make_shared<TestDevice>();
  device->fails = true;
  CHECK_THROWS_WITH(execute(round_trip(), rig_of({device})), Containing("illegal address"));
  CHECK(device->used == 0);
  CHECK_FALSE(device->has_pinned());
}

TEST_CASE("what real GPUs are not used for is refused before anything runs", "[executor][device]") {
  const auto device = std::make_shared<TestDevice>();
  const auto alone = [](const Work& work) {
    Lanes l;
    l.add("work", work);
    return l.builder.finish(1, 1);
  };
  const auto refused = [&](const Work& work, const char* why) {
    CHECK_THROWS_WITH(execute(alone(work), rig_of({device})), Containing(why));
  };
  refused(Collective{CollectiveKind::all_reduce, Bytes(1e6), 2, 0, 2}, "collectives");
  refused(Copy{gpu0, gpu0, Bytes(1e6)}, "between GPUs");
  refused(FileIo{Direction::write, 0, gpu0, Bytes(1e6)}, "gpudirect: false");
  refused(Compute{1, {gemm}}, "uses GPU 1; this machine has 1");
  refused(Copy{host0, gpu1, Bytes(1e6)}, "uses GPU 1");
  Lanes l;
  const PoolId memory = l.builder.pool("gpu1", gpu1, Bytes(1e8));
  const BufferId buffer = l.builder.buffer(memory, l.builder.owner("tensors"), Bytes(1e6));
  l.add("allocate", Delay{}, {}, {allocate(buffer)});
  CHECK_THROWS_WITH(execute(l.builder.finish(1, 1), rig_of({device})), Containing("uses GPU 1"));
  Rig paced = rig_of({device});
  paced.pace = Pace::paced;
  CHECK_THROWS_AS(execute(alone(Compute{0, {gemm}}), paced), InputError);
  CHECK(device->peak == 0);
}
