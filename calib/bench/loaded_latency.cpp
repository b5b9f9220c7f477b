#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "calib/bench/chain.hpp"
#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/kernels/kernels.hpp"
#include "calib/rig/host_buffer.hpp"

/// dram.latency: seconds of one load that depends on the one before, while `load` other threads
/// read as fast as they can; dram.latency_load: what those read meanwhile, bytes per second.
/// The chain is that of chain.hpp, in pages of 2 MiB where the system gives them.
namespace tidegate::calib {
namespace {

std::size_t lines_of(const Setup& setup) {
  const double wanted = std::max(256.0 * 1048576, 4 * setup.host.last_level_cache.value());
  const double granted = memory_part::latency * setup.host.memory_available.value();
  if (wanted <= granted) return static_cast<std::size_t>(wanted) / sizeof(Line);
  return fitting(setup, memory_part::latency, sizeof(Line));
}

// Threads that read parts of a buffer again and again until they are told to stop.
class Readers {
 public:
  Readers(std::span<const float> buffer, int threads) {
    for (int t = 0; t < threads; ++t) {
      threads_.emplace_back([this, buffer, t, threads] {
        const std::size_t part = buffer.size() / static_cast<std::size_t>(threads);
        const auto own = buffer.subspan(static_cast<std::size_t>(t) * part, part);
        const std::size_t piece = std::min<std::size_t>(part, std::size_t{1} << 18);
        for (std::size_t at = 0; !stops_; at = at + 2 * piece <= part ? at + piece : 0) {
          sum_ += static_cast<std::uint64_t>(cpu::read(own.subspan(at, piece), 1));
          bytes_ += piece * sizeof(float);
        }
      });
    }
  }
  ~Readers() {
    stops_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;
  double bytes() const { return static_cast<double>(bytes_.load()); }

 private:
  std::atomic<bool> stops_ = false;
  std::atomic<std::uint64_t> bytes_ = 0, sum_ = 0;
  std::vector<std::thread> threads_;
};

class LoadedLatency : public Bench {
 public:
  explicit LoadedLatency(const Setup& setup) : count_(lines_of(setup)) {
    const Clock clock = highest_clock();
    const auto bytes = static_cast<double>(count_ * sizeof(Line));
    for (const int threads : thread_counts(setup)) {
      const int load = threads - 1;
      const Settings at = {{"bytes", bytes}, {"load", load}};
      rows_.push_back(cpu_row("dram.latency", at, Unit::seconds, {}));
      settings_.push_back({load, false});
      if (load == 0) continue;
      rows_.push_back(cpu_row("dram.latency_load", at, Unit::bytes_per_second,
                              memory_ceiling(setup, clock, load, Bytes(bytes), 1)));
      settings_.push_back({load, true});
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    buffer_ = rig::HostBuffer(count_ * sizeof(Line), rig::HostBuffer::Pages::huge);
    link(buffer_.as<Line>());
  }

  Sample sample(std::size_t row) override {
    const Setting& setting = settings_[row];
    const auto lines = buffer_.as<Line>();
    const Readers readers(buffer_.as<float>(), setting.load);
    const double before = readers.bytes();
    const Walk walked = walk(lines, at_, rows_[row].target);
    const double read = readers.bytes() - before;
    at_ = walked.at;
    return {.value = setting.is_load ? read / walked.elapsed.value()
                                     : walked.elapsed.value() / walked.steps,
            .elapsed = walked.elapsed,
            .is_verified = walked.is_right};
  }

  void finish() override { buffer_ = {}; }

 private:
  struct Setting {
    int load = 0;
    bool is_load = false;
  };
  std::size_t count_;
  std::vector<Row> rows_;
  std::vector<Setting> settings_;
  rig::HostBuffer buffer_;
  std::uint32_t at_ = 0;  // of the walk, which goes on from sample to sample
};

}  // namespace

std::unique_ptr<Bench> make_loaded_latency(const Setup& setup) {
  return std::make_unique<LoadedLatency>(setup);
}

}  // namespace tidegate::calib
