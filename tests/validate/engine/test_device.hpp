#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/work.hpp"
#include "validate/engine/device.hpp"
#include "validate/engine/rig.hpp"

/// GPUs that are none: they have memory of their own, refuse what is not theirs, and know what was
/// asked of them. What real ones add is speed.
namespace tidegate {

struct TestMachine;

class TestDevice final : public Device {
 public:
  TestDevice(TestMachine& machine, std::int64_t capacity)
      : machine_(machine), capacity_(capacity) {}

  std::string name() const override { return "test"; }
  std::byte* allocate(std::int64_t bytes) override { return take(bytes, false); }
  void free(std::byte* at) override { give_back(at, false); }
  std::byte* allocate_lasting(std::int64_t bytes) override { return take(bytes, true); }
  void free_lasting(std::byte* at) override { give_back(at, true); }
  void pin(std::span<std::byte> pages) override;
  void unpin(std::span<std::byte> pages) override;
  bool admit(std::uint16_t other) override;
  std::unique_ptr<DeviceSeat> sit_down(std::span<const Kernel> kernels) override;

  bool is_mine(std::span<const std::byte> bytes) const;
  bool is_lasting(std::span<const std::byte> bytes) const;
  bool is_pinned(std::span<const std::byte> bytes) const;
  bool has_pinned() const { return !pinned_.empty(); }

  std::int64_t used = 0, peak = 0;
  std::size_t copied = 0, from_pinned = 0, pieces = 0;
  std::map<std::uint16_t, std::size_t> sent;  // bytes to peers
  std::set<std::uint16_t> admitted;
  Flops computed;
  Bytes streamed;
  bool fails = false, is_apart = false;

 private:
  struct Block {
    std::vector<std::byte> memory;
    bool is_lasting = false;
  };
  TestMachine& machine_;
  std::int64_t capacity_;
  std::map<const std::byte*, Block> blocks_;
  std::map<const std::byte*, std::size_t> pinned_;

  friend class TestSeat;
  std::byte* take(std::int64_t bytes, bool is_lasting);
  void give_back(std::byte* at, bool is_lasting);
  const Block* block_of(std::span<const std::byte> bytes) const;
};

/// Sums and copies for real. A member whose GPU is `lazy` keeps what it has.
class TestTeams final : public DeviceTeams {
 public:
  explicit TestTeams(TestMachine& of) : machine(of) {}
  std::string why_absent() const override { return why; }
  std::unique_ptr<DeviceTeam> sit_down(std::span<const std::uint16_t> gpus) override;

  struct Run {
    std::vector<std::uint16_t> gpus;
    CollectiveKind kind;
    std::size_t sent, received;  // bytes of each member
  };
  TestMachine& machine;
  std::string why;
  std::vector<Run> runs;  // those of trials too
  std::optional<std::uint16_t> lazy;
  std::size_t fails_after = 1'000'000;
};

/// Files by pread and pwrite.
class TestFiles final : public DirectFiles {
 public:
  explicit TestFiles(TestMachine& of) : machine(of) {}
  std::string why_absent() override { return why; }
  FileWay way() override { return expected; }
  std::optional<std::int64_t> counted() const override {
    if (!counts) return std::nullopt;
    return static_cast<std::int64_t>(counted_part * static_cast<double>(moved));
  }
  std::unique_ptr<DirectFile> open(int descriptor) override;
  void attach(std::uint16_t gpu, std::span<std::byte> memory) override;
  void detach(std::uint16_t gpu, std::span<std::byte> memory) override;

  TestMachine& machine;
  std::string why, why_not_open;
  FileWay expected = FileWay::direct;
  bool counts = true, corrupts = false;
  double counted_part = 1;
  std::int64_t moved = 5 << 20, read = 0, written = 0;
  std::vector<std::size_t> calls;  // bytes of each
  std::set<std::pair<std::uint16_t, const std::byte*>> attached;
  int open_files = 0;
};

struct TestMachine {
  explicit TestMachine(std::uint16_t gpus, std::int64_t capacity = 1'000'000'000);
  TestMachine(const TestMachine&) = delete;
  TestMachine& operator=(const TestMachine&) = delete;

  std::recursive_mutex mutex;  // of everything in it
  std::vector<std::shared_ptr<TestDevice>> gpus;
  std::shared_ptr<TestTeams> teams;
  std::shared_ptr<TestFiles> files;

  Devices devices() const { return {{gpus.begin(), gpus.end()}, teams, files}; }
  /// Nothing is left behind, and nothing was ever taken.
  bool is_empty() const;
  bool is_untouched() const;
};

/// A native rig of the toy machine, whose files are in the folder for temporary ones.
Rig rig_of(const TestMachine& machine);

}  // namespace tidegate
