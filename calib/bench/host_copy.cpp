#include <algorithm>
#include <cstring>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/rig/host_buffer.hpp"

/// host_copy: bytes copied per second by memcpy in one thread, as the engine copies between
/// buffers. Neighbouring pieces of two large buffers in turn, so that small copies do not repeat
/// in a cache.
namespace tidegate::calib {
namespace {

constexpr std::size_t least = std::size_t{64} << 10, most = std::size_t{512} << 20;

class HostCopy : public Bench {
 public:
  explicit HostCopy(const Setup& setup)
      : buffer_(std::clamp(fitting(setup, memory_part::host_copy, 2), least, most)) {
    const Clock clock = highest_clock();
    const std::size_t factor = setup.effort == Effort::quick      ? 32
                               : setup.effort == Effort::standard ? 8
                                                                  : 2;
    sizes_ = sizes(least, buffer_, factor);
    for (const std::size_t size : sizes_) {
      const auto bytes = static_cast<double>(size);
      rows_.push_back(cpu_row("host_copy", {{"bytes", bytes}}, Unit::bytes_per_second,
                              memory_ceiling(setup, clock, 1, Bytes(2 * bytes), 2)));
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    from_ = rig::HostBuffer(buffer_);
    to_ = rig::HostBuffer(buffer_);
    fill_keyed(from_.as<float>(), 4);
  }

  Sample sample(std::size_t row) override {
    const std::size_t size = sizes_[row], pieces = buffer_ / size, floats = size / sizeof(float);
    const auto target = to_.as<float>();
    for (const std::size_t i : spots(target.size())) target[i] = -1;
    std::size_t piece = 0;
    const Timed timed = run_for(rows_[row].target, [&] {
      std::memcpy(to_.data() + piece * size, from_.data() + piece * size, size);
      piece = (piece + 1) % pieces;
    });
    const std::size_t last = (piece + pieces - 1) % pieces * floats;
    bool is_right = true;
    for (const std::size_t i : spots(floats)) is_right &= target[last + i] == keyed(last + i, 4);
    return {.value = timed.rate(static_cast<double>(size)),
            .elapsed = timed.elapsed,
            .is_verified = is_right};
  }

  void finish() override { from_ = {}, to_ = {}; }

 private:
  std::size_t buffer_;
  std::vector<std::size_t> sizes_;
  std::vector<Row> rows_;
  rig::HostBuffer from_, to_;
};

}  // namespace

std::unique_ptr<Bench> make_host_copy(const Setup& setup) {
  return std::make_unique<HostCopy>(setup);
}

}  // namespace tidegate::calib
