#include <algorithm>
#include <cstring>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/rig/host_buffer.hpp"

/// host_copy: bytes copied per second by memcpy in one thread, as the engine copies between
/// buffers. Neighbouring pieces of two large buffers in turn, so that small copies do not repeat
/// in a cache.
///
/// host_copy_again: how many times as fast the same piece is copied to the same place again and
/// again: both in turn, first, again, again, first, in one sample. The caches end where it falls to
/// 1 (form cache_knee of calib/fit; a piece of n bytes holds 2n of them).
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
    for (const std::size_t size : sizes(least, buffer_, factor)) {
      const auto bytes = static_cast<double>(size);
      rows_.push_back(cpu_row("host_copy", {{"bytes", bytes}}, Unit::bytes_per_second,
                              memory_ceiling(setup, clock, 1, Bytes(2 * bytes), 2)));
      settings_.push_back({size, false});
      rows_.push_back(cpu_row("host_copy_again", {{"bytes", bytes}}, Unit::fraction, {}));
      settings_.push_back({size, true});
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    from_ = rig::HostBuffer(buffer_);
    to_ = rig::HostBuffer(buffer_);
    fill_keyed(from_.as<float>(), 4);
  }

  Sample sample(std::size_t row) override {
    const auto [size, is_ratio] = settings_[row];
    const auto target = to_.as<float>();
    for (const std::size_t i : spots(target.size())) target[i] = -1;
    const Seconds time = rows_[row].target;
    const Timed in_turn = copy(size, is_ratio ? 0.25 * time : time, true);
    Sample sample{.value = in_turn.rate(static_cast<double>(size)), .elapsed = in_turn.elapsed};
    if (is_ratio) {
      const Timed again = copy(size, 0.5 * time, false), later = copy(size, 0.25 * time, true);
      const Timed first{in_turn.count + later.count, in_turn.elapsed + later.elapsed};
      sample.value = again.rate(1) / first.rate(1);
      sample.elapsed = first.elapsed + again.elapsed;
    }
    sample.is_verified = holds(size);
    return sample;
  }

  void finish() override { from_ = {}, to_ = {}; }

 private:
  struct Setting {
    std::size_t bytes = 0;
    bool is_ratio = false;
  };

  // Pieces in turn, or the one that was last copied over and over.
  Timed copy(std::size_t size, Seconds time, bool in_turn) {
    const std::size_t pieces = buffer_ / size;
    return run_for(time, [&] {
      if (in_turn) piece_ = (piece_ + 1) % pieces;
      piece_ %= pieces;
      std::memcpy(to_.data() + piece_ * size, from_.data() + piece_ * size, size);
    });
  }

  // Whether the last copy arrived.
  bool holds(std::size_t size) const {
    const std::size_t floats = size / sizeof(float), last = piece_ * floats;
    const auto target = to_.as<float>();
    return std::ranges::all_of(
        spots(floats), [&](std::size_t i) { return target[last + i] == keyed(last + i, 4); });
  }

  std::size_t buffer_, piece_ = 0;
  std::vector<Row> rows_;
  std::vector<Setting> settings_;
  rig::HostBuffer from_, to_;
};

}  // namespace

std::unique_ptr<Bench> make_host_copy(const Setup& setup) {
  return std::make_unique<HostCopy>(setup);
}

}  // namespace tidegate::calib
