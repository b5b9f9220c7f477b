#include "tests/validate/engine/test_device.hpp"

#include <filesystem>

#include <unistd.h>

#include "calib/rig/host_buffer.hpp"
#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/models/toy.hpp"

namespace tidegate {
namespace {

template <class Blocks>
auto before(const Blocks& blocks, std::span<const std::byte> bytes) {
  const auto after = blocks.upper_bound(bytes.data());
  return after == blocks.begin() ? blocks.end() : std::prev(after);
}

}  // namespace

std::byte* TestDevice::take(std::int64_t bytes, bool is_lasting) {
  const std::scoped_lock lock(machine_.mutex);
  if (used + bytes > capacity_) throw MachineError("the device has no memory left");
  Block block{std::vector<std::byte>(static_cast<std::size_t>(bytes)), is_lasting};
  std::byte* const at = block.memory.data();
  blocks_.emplace(at, std::move(block));
  used += bytes;
  peak = std::max(peak, used);
  return at;
}

void TestDevice::give_back(std::byte* at, bool is_lasting) {
  const std::scoped_lock lock(machine_.mutex);
  CHECK(blocks_.at(at).is_lasting == is_lasting);
  used -= static_cast<std::int64_t>(blocks_.at(at).memory.size());
  blocks_.erase(at);
}

void TestDevice::pin(std::span<std::byte> pages) {
  const std::scoped_lock lock(machine_.mutex);
  CHECK(pinned_.emplace(pages.data(), pages.size()).second);
}

void TestDevice::unpin(std::span<std::byte> pages) {
  const std::scoped_lock lock(machine_.mutex);
  CHECK(pinned_.erase(pages.data()) == 1);
}

bool TestDevice::admit(std::uint16_t other) {
  admitted.insert(other);
  return !is_apart;
}

const TestDevice::Block* TestDevice::block_of(std::span<const std::byte> bytes) const {
  const auto found = before(blocks_, bytes);
  if (found == blocks_.end()) return nullptr;
  const auto& [at, block] = *found;
  return bytes.data() + bytes.size() <= at + block.memory.size() ? &block : nullptr;
}

bool TestDevice::is_mine(std::span<const std::byte> bytes) const {
  return block_of(bytes) != nullptr;
}

bool TestDevice::is_lasting(std::span<const std::byte> bytes) const {
  const Block* const block = block_of(bytes);
  return block != nullptr && block->is_lasting;
}

bool TestDevice::is_pinned(std::span<const std::byte> bytes) const {
  const auto found = before(pinned_, bytes);
  return found != pinned_.end() && bytes.data() + bytes.size() <= found->first + found->second;
}

class TestSeat final : public DeviceSeat {
 public:
  TestSeat(TestMachine& machine, TestDevice& device, std::span<const Kernel> kernels)
      : machine_(machine), device_(device), kernels_(kernels.begin(), kernels.end()) {}

  void copy(std::span<const std::byte> from, std::span<std::byte> to) override {
    const std::scoped_lock lock(machine_.mutex);
    check(from, to);
    const bool is_from_mine = device_.is_mine(from), is_to_mine = device_.is_mine(to);
    const auto other = is_from_mine ? std::span<const std::byte>(to) : from;
    if (device_.is_pinned(other)) device_.from_pinned += from.size();
    std::copy(from.begin(), from.end(), to.begin());
    if (is_from_mine || is_to_mine) device_.copied += from.size();
  }
  void copy_pieces(std::span<const std::byte> from, std::span<std::byte> to, std::size_t each,
                   std::size_t pitch) override {
    const std::scoped_lock lock(machine_.mutex);
    check(from, to);
    for (std::size_t at = 0; at < from.size(); at += pitch, ++device_.pieces)
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(at), each,
                  to.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void copy_to(std::uint16_t gpu, std::span<const std::byte> from,
               std::span<std::byte> to) override {
    const std::scoped_lock lock(machine_.mutex);
    if (device_.fails) throw MachineError("the link is down");
    if (from.size() != to.size() || !device_.is_mine(from) || !machine_.gpus[gpu]->is_mine(to))
      throw MachineError("a copy has an end in memory of another device");
    std::copy(from.begin(), from.end(), to.begin());
    device_.sent[gpu] += from.size();
  }
  void run(std::span<const Kernel> kernels) override {
    const std::scoped_lock lock(machine_.mutex);
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
  TestMachine& machine_;
  TestDevice& device_;
  std::vector<Kernel> kernels_;

  void check(std::span<const std::byte> from, std::span<std::byte> to) const {
    if (from.size() != to.size()) throw MachineError("a copy has ends of other lengths");
    for (const std::span<const std::byte> end : {from, std::span<const std::byte>(to)}) {
      for (const auto& gpu : machine_.gpus) {
        if (gpu.get() != &device_ && gpu->is_mine(end))
          throw MachineError("a copy has an end in memory of another device");
      }
    }
    if (!device_.is_mine(from) && !device_.is_mine(to))
      throw MachineError("a copy has no end in memory of the device");
  }
};

std::unique_ptr<DeviceSeat> TestDevice::sit_down(std::span<const Kernel> kernels) {
  return std::make_unique<TestSeat>(machine_, *this, kernels);
}

namespace {

class TestTeam final : public DeviceTeam {
 public:
  TestTeam(TestTeams& teams, std::span<const std::uint16_t> gpus)
      : teams_(teams), gpus_(gpus.begin(), gpus.end()) {}

  void run(CollectiveKind kind, std::span<const std::span<const std::byte>> from,
           std::span<const std::span<std::byte>> to) override {
    const std::scoped_lock lock(teams_.machine.mutex);
    if (teams_.runs.size() >= teams_.fails_after) throw MachineError("a peer is gone");
    for (std::size_t m = 0; m < gpus_.size(); ++m) {
      const TestDevice& gpu = *teams_.machine.gpus[gpus_[m]];
      if (!gpu.is_lasting(from[m]) || !gpu.is_lasting(to[m]))
        throw MachineError("a member's memory is not its own");
    }
    teams_.runs.push_back({gpus_, kind, from[0].size(), to[0].size()});
    for (std::size_t m = 0; m < gpus_.size(); ++m) {
      if (teams_.lazy != gpus_[m]) receive(kind, from, to[m], m);
    }
  }

 private:
  using Sent = std::span<const std::span<const std::byte>>;
  TestTeams& teams_;
  std::vector<std::uint16_t> gpus_;

  static float at(std::span<const std::byte> bytes, std::size_t i) {
    return reinterpret_cast<const float*>(bytes.data())[i];
  }
  static float sum(Sent from, std::size_t i) {
    float all = 0;
    for (const auto& one : from) all += at(one, i);
    return all;
  }
  static void receive(CollectiveKind kind, Sent from, std::span<std::byte> to, std::size_t me) {
    const std::size_t count = to.size() / sizeof(float), part = count / from.size();
    auto* const out = reinterpret_cast<float*>(to.data());
    for (std::size_t i = 0; i < count; ++i) {
      switch (kind) {
        case CollectiveKind::all_reduce:
          out[i] = sum(from, i);
          break;
        case CollectiveKind::reduce_scatter:
          out[i] = sum(from, me * count + i);
          break;
        case CollectiveKind::broadcast:
          out[i] = at(from[0], i);
          break;
        case CollectiveKind::all_gather:
          out[i] = at(from[i / part], i % part);
          break;
        case CollectiveKind::all_to_all:
          out[i] = at(from[i / part], me * part + i % part);
          break;
      }
    }
  }
};

class TestFile final : public DirectFile {
 public:
  TestFile(TestFiles& files, int descriptor) : files_(files), descriptor_(descriptor) {
    ++files_.open_files;
  }
  ~TestFile() override { --files_.open_files; }
  TestFile(const TestFile&) = delete;
  TestFile& operator=(const TestFile&) = delete;

  void read(std::int64_t offset, const AttachedPart& to) override {
    const std::scoped_lock lock(files_.machine.mutex);
    check(to);
    const rig::HostBuffer pages(to.bytes);
    CHECK(pread(descriptor_, pages.data(), to.bytes, offset) == static_cast<ssize_t>(to.bytes));
    if (files_.corrupts) pages.data()[100] ^= std::byte{1};
    std::ranges::copy(pages.bytes(), to.memory.subspan(to.at).begin());
    files_.read += static_cast<std::int64_t>(to.bytes);
  }
  void write(std::int64_t offset, const AttachedPart& from) override {
    const std::scoped_lock lock(files_.machine.mutex);
    check(from);
    const rig::HostBuffer pages(from.bytes);
    std::ranges::copy(from.memory.subspan(from.at, from.bytes), pages.data());
    CHECK(pwrite(descriptor_, pages.data(), from.bytes, offset) ==
          static_cast<ssize_t>(from.bytes));
    files_.written += static_cast<std::int64_t>(from.bytes);
  }

 private:
  TestFiles& files_;
  int descriptor_;

  void check(const AttachedPart& part) const {
    if (!files_.attached.contains({part.gpu, part.memory.data()}))
      throw MachineError("memory that is not attached");
    if (!files_.machine.gpus[part.gpu]->is_lasting(part.memory))
      throw MachineError("memory of another device");
    if (part.bytes % 4096 != 0) throw MachineError("no whole pages");
    files_.moved += static_cast<std::int64_t>(part.bytes);
    files_.calls.push_back(part.bytes);
  }
};

}  // namespace

std::unique_ptr<DeviceTeam> TestTeams::sit_down(std::span<const std::uint16_t> gpus) {
  return std::make_unique<TestTeam>(*this, gpus);
}

std::unique_ptr<DirectFile> TestFiles::open(int descriptor) {
  if (!why_not_open.empty()) throw MachineError(why_not_open);
  return std::make_unique<TestFile>(*this, descriptor);
}

void TestFiles::attach(std::uint16_t gpu, std::span<std::byte> memory) {
  const std::scoped_lock lock(machine.mutex);
  CHECK(machine.gpus[gpu]->is_lasting(memory));
  CHECK(attached.emplace(gpu, memory.data()).second);
}

void TestFiles::detach(std::uint16_t gpu, std::span<std::byte> memory) {
  const std::scoped_lock lock(machine.mutex);
  CHECK(machine.gpus[gpu]->is_lasting(memory));
  CHECK(attached.erase({gpu, memory.data()}) == 1);
}

TestMachine::TestMachine(std::uint16_t count, std::int64_t capacity)
    : teams(std::make_shared<TestTeams>(*this)), files(std::make_shared<TestFiles>(*this)) {
  for (std::uint16_t g = 0; g < count; ++g)
    gpus.push_back(std::make_shared<TestDevice>(*this, capacity));
}

bool TestMachine::is_empty() const {
  return std::ranges::all_of(
             gpus, [](const auto& gpu) { return gpu->used == 0 && !gpu->has_pinned(); }) &&
         files->attached.empty() && files->open_files == 0;
}

bool TestMachine::is_untouched() const {
  return std::ranges::all_of(gpus, [](const auto& gpu) { return gpu->peak == 0; });
}

Rig rig_of(const TestMachine& machine) {
  return {
      .machine = toy::machine({toy::gpu(), toy::gpu()}, toy::drive(), toy::fabric(), toy::host()),
      .pace = Pace::native,
      .folders = {std::filesystem::temp_directory_path().string()},
      .faults = {},
      .devices = machine.devices()};
}

}  // namespace tidegate
