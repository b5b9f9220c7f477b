#include "calib/bench/dram.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/kernels/kernels.hpp"
#include "calib/rig/host_buffer.hpp"

namespace tidegate::calib {
namespace {

enum class Kind : std::uint8_t { read, write, copy, copy_streaming, triad };
constexpr std::array<Stream, 5> all_streams = {{{"dram.read", 4, 0, 0},
                                                {"dram.write", 0, 4, 4},
                                                {"dram.copy", 4, 4, 4},
                                                {"dram.copy_streaming", 4, 4, 0},
                                                {"dram.triad", 8, 4, 4}}};
constexpr float scale = 3.0F;

// Elements of one array: at least 256 MiB and four last-level caches (STREAM's rule), as far as
// three arrays fit in this bench's part of the memory.
std::size_t elements_of(const Setup& setup) {
  constexpr std::size_t arrays = 3 * sizeof(float);
  const double wanted = std::max(256.0 * 1048576, 4 * setup.host.last_level_cache.value());
  const double granted = memory_part::dram * setup.host.memory_available.value() / 3;
  if (wanted <= granted) return static_cast<std::size_t>(wanted) / 4096 * 1024;
  return fitting(setup, memory_part::dram, arrays);
}
// Per thread three arrays of 512 KiB: they stay in a last-level cache. One per core is assumed to
// hold that much of it.
constexpr std::size_t cached_elements = 131072;

class Dram : public Bench {
 public:
  explicit Dram(const Setup& setup) : elements_(elements_of(setup)) {
    const Clock clock = highest_clock();
    for (const int threads : thread_counts(setup)) {
      std::vector<std::size_t> lengths = {elements_};
      const std::size_t cached = cached_elements * static_cast<std::size_t>(threads);
      if (setup.effort != Effort::quick && cached < elements_) lengths.push_back(cached);
      for (const std::size_t n : lengths) {
        for (std::size_t kind = 0; kind < all_streams.size(); ++kind)
          add(setup, clock, kind, n, threads);
      }
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    const std::size_t bytes = elements_ * sizeof(float);
    a_ = rig::HostBuffer(bytes);
    b_ = rig::HostBuffer(bytes);
    c_ = rig::HostBuffer(bytes);
    fill_keyed(b_.as<float>(), 2);
    fill_keyed(c_.as<float>(), 3);
    std::uint32_t sum = 0;
    const auto b = b_.as<float>();
    for (std::size_t i = 0; i < b.size(); ++i) {
      sum += std::bit_cast<std::uint32_t>(b[i]);
      for (Setting& s : settings_) {
        if (i + 1 == s.elements) s.checksum = sum;
      }
    }
  }

  Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    const auto a = a_.as<float>().first(s.elements);
    for (const std::size_t i : spots(s.elements)) a[i] = -1;
    bool is_right = true;
    const Timed timed = run_for(rows_[row].target, [&] { is_right = run(s) && is_right; });
    const double bytes = all_streams[static_cast<std::size_t>(s.kind)].asked();
    return {.value = timed.rate(bytes * static_cast<double>(s.elements)),
            .elapsed = timed.elapsed,
            .is_verified = is_right && holds(s)};
  }

  void finish() override { a_ = {}, b_ = {}, c_ = {}; }

 private:
  struct Setting {
    Kind kind = Kind::read;
    std::size_t elements = 0;
    int threads = 1;
    double checksum = 0;  // of b
  };

  void add(const Setup& setup, const Clock& clock, std::size_t kind, std::size_t n, int threads) {
    const Stream& stream = all_streams[kind];
    const auto elements = static_cast<double>(n);
    rows_.push_back(
        cpu_row(stream.quantity, {{"bytes", elements * sizeof(float)}, {"threads", threads}},
                Unit::bytes_per_second,
                memory_ceiling(setup, clock, threads, Bytes(stream.asked() * elements), 1)));
    settings_.push_back({static_cast<Kind>(kind), n, threads, 0});
  }

  // One pass; false when what was read is not what is there.
  bool run(const Setting& s) {
    const auto a = a_.as<float>().first(s.elements), b = b_.as<float>().first(s.elements);
    const auto c = c_.as<float>().first(s.elements);
    switch (s.kind) {
      case Kind::read:
        return cpu::read(b, s.threads) == s.checksum;
      case Kind::write:
        written_ = written_ < 1000 ? written_ + 1 : 1;
        cpu::fill(a, written_, s.threads);
        return true;
      case Kind::copy:
        cpu::copy(b, a, s.threads);
        return true;
      case Kind::copy_streaming:
        cpu::copy_streaming(b, a, s.threads);
        return true;
      case Kind::triad:
        cpu::triad(b, c, scale, a, s.threads);
        return true;
    }
    return false;
  }

  // Whether spots of `a` are what the last pass must have left.
  bool holds(const Setting& s) const {
    const auto a = a_.as<float>();
    return std::ranges::all_of(spots(s.elements), [&](std::size_t i) {
      if (s.kind == Kind::read) return true;
      if (s.kind == Kind::write) return a[i] == written_;
      if (s.kind == Kind::triad) return a[i] == keyed(i, 2) + scale * keyed(i, 3);
      return a[i] == keyed(i, 2);
    });
  }

  std::size_t elements_;
  std::vector<Row> rows_;
  std::vector<Setting> settings_;
  float written_ = 0;
  rig::HostBuffer a_, b_, c_;
};

}  // namespace

std::span<const Stream> streams() { return all_streams; }

std::unique_ptr<Bench> make_dram(const Setup& setup) { return std::make_unique<Dram>(setup); }

}  // namespace tidegate::calib
