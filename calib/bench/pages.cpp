#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include <sys/mman.h>

#include <fmt/core.h>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/rig/host_buffer.hpp"
#include "models/base/error.hpp"

/// first_touch: bytes of new memory per second, mapped and every page written once; `huge` 1 asks
/// for pages of 2 MiB.
/// pin, unpin: bytes per second that mlock and munlock take for memory that exists.
namespace tidegate::calib {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

class FirstTouch : public Bench {
 public:
  explicit FirstTouch(const Setup& setup) {
    const std::size_t most = std::min(fitting(setup, memory_part::pages, 2), 1024 * mebibyte);
    const std::size_t least = 64 * mebibyte;
    for (const std::size_t size : setup.effort == Effort::quick
                                      ? std::vector<std::size_t>{std::min(least, most)}
                                      : sizes(least, most, 4)) {
      add(size, rig::HostBuffer::Pages::usual);
      add(size, rig::HostBuffer::Pages::huge);
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  Sample sample(std::size_t row) override {
    const auto& [size, pages] = settings_[row];
    // Unmapping is left out: a buffer lives as long as a run.
    double seconds = 0;
    std::int64_t count = 0;
    bool is_right = true;
    while (seconds < rows_[row].target.value()) {
      const double begin = now();
      const rig::HostBuffer buffer(size, pages);
      seconds += now() - begin;
      ++count;
      is_right = is_right && buffer.data()[0] == std::byte{1} &&
                 buffer.data()[(size - 1) / 4096 * 4096] == std::byte{1};
    }
    return {.value = static_cast<double>(size) * static_cast<double>(count) / seconds,
            .elapsed = Seconds(seconds),
            .is_verified = is_right};
  }

 private:
  void add(std::size_t size, rig::HostBuffer::Pages pages) {
    const bool is_huge = pages == rig::HostBuffer::Pages::huge;
    const Settings at = {{"bytes", static_cast<double>(size)}, {"huge", is_huge ? 1 : 0}};
    rows_.push_back(cpu_row("first_touch", at, Unit::bytes_per_second, {}));
    settings_.emplace_back(size, pages);
  }

  std::vector<Row> rows_;
  std::vector<std::pair<std::size_t, rig::HostBuffer::Pages>> settings_;
};

std::size_t most_pinned(const Setup& setup) {
  const auto limit = static_cast<std::size_t>(setup.host.locked_limit.value());
  // Half of what may be locked: others of this process lock, too.
  const std::size_t most = std::min(fitting(setup, memory_part::pages, 2), 1024 * mebibyte);
  return std::bit_floor(std::min(limit / 2, most));
}

class Pin : public Bench {
 public:
  explicit Pin(const Setup& setup) {
    const std::size_t most = most_pinned(setup);
    sizes_ = setup.effort == Effort::quick ? std::vector<std::size_t>{most}
                                           : sizes(std::size_t{64} << 10, most, 8);
    for (const std::size_t size : sizes_) {
      for (const char* quantity : {"pin", "unpin"}) {
        rows_.push_back(
            cpu_row(quantity, {{"bytes", static_cast<double>(size)}}, Unit::bytes_per_second, {}));
        rows_.back().target = Seconds(0.05);
      }
    }
  }

  std::vector<Row> rows() const override { return rows_; }
  void prepare() override { buffer_ = rig::HostBuffer(sizes_.back()); }

  Sample sample(std::size_t row) override {
    const std::size_t size = sizes_[row / 2];
    double locking = 0, unlocking = 0;
    std::int64_t count = 0;
    while (locking + unlocking < rows_[row].target.value()) {
      const double begin = now();
      const int locked = mlock(buffer_.data(), size);
      const double middle = now();
      if (locked != 0) {
        throw MachineError(fmt::format("mlock of {} bytes: {}", size, std::strerror(errno)));
      }
      const double start = now();
      munlock(buffer_.data(), size);
      unlocking += now() - start;
      locking += middle - begin;
      ++count;
    }
    const double seconds = row % 2 == 0 ? locking : unlocking;
    return {.value = static_cast<double>(size) * static_cast<double>(count) / seconds,
            .elapsed = Seconds(locking + unlocking)};
  }

  void finish() override { buffer_ = {}; }

 private:
  std::vector<std::size_t> sizes_;
  std::vector<Row> rows_;
  rig::HostBuffer buffer_;
};

}  // namespace

std::unique_ptr<Bench> make_first_touch(const Setup& setup) {
  return std::make_unique<FirstTouch>(setup);
}

std::unique_ptr<Bench> make_pin(const Setup& setup) { return std::make_unique<Pin>(setup); }

std::string why_not_pin(const Setup& setup) {
  if (most_pinned(setup) >= (std::size_t{64} << 10)) return "";
  return fmt::format("only {} may be locked; raise it with ulimit -l",
                     to_text(setup.host.locked_limit));
}

}  // namespace tidegate::calib
