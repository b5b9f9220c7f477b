#include <chrono>
#include <map>

#include "calib/cuda/benches.hpp"
#include "calib/cuda/copy_buffers.hpp"
#include "calib/cuda/kernels.hpp"
#include "calib/cuda/settings.hpp"
#include "calib/cuda/station.hpp"

// Copies one way at a time: pinned memory by a copy engine and by multiprocessors, behind the gate;
// pageable memory by cudaMemcpy, which stages through the driver's buffers and returns when done,
// so that the host's clock tells its time and no gate may stand before it.
namespace tidegate::cuda {
namespace {

enum class By { engine, multiprocessors };

struct Setting {
  std::size_t station = 0;
  Way way = Way::h2d;
  std::size_t bytes = 0;
  HostMemory memory = HostMemory::pinned;
  By by = By::engine;
};

Seconds since(std::chrono::steady_clock::time_point begin) {
  return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

class CopyBench : public calib::Bench {
 public:
  explicit CopyBench(const calib::Setup& setup)
      : gpus_(gpu_facts()), seed_(static_cast<std::uint32_t>(setup.seed)) {
    const auto sizes = that_fit(copy_sizes(setup.effort), setup.host.memory_available);
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      for (const std::int64_t size : sizes) {
        // The other GPUs show with two sizes whether their links are alike.
        if (g > 0 && size != sizes.front() && size != (std::int64_t{256} << 20)) continue;
        for (const Way way : {Way::h2d, Way::d2h}) add(g, way, static_cast<std::size_t>(size));
      }
    }
  }

  std::vector<calib::Row> rows() const override {
    std::vector<calib::Row> rows;
    for (const Setting& s : settings_) {
      rows.push_back(gpu_row(s.way == Way::h2d ? "gpu.h2d" : "gpu.d2h",
                             {{"bytes", static_cast<double>(s.bytes)},
                              {"memory", s.memory == HostMemory::pinned ? 1 : 0},
                              {"by", s.by == By::multiprocessors ? 1 : 0}},
                             calib::Unit::bytes_per_second, gpus_[s.station],
                             pcie_ceiling(gpus_[s.station])));
    }
    return rows;
  }

  void prepare() override {
    for (const GpuFacts& gpu : gpus_) stations_.emplace_back(gpu);
    std::map<std::pair<std::size_t, HostMemory>, std::size_t> largest;
    for (const Setting& s : settings_) {
      auto& bytes = largest[{s.station, s.memory}];
      bytes = std::max(bytes, s.bytes);
    }
    for (const auto& [key, bytes] : largest) {
      buffers_.try_emplace(key, stations_[key.first], bytes, key.second, seed_);
    }
  }

  calib::Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    Station& station = stations_[s.station];
    CopyBuffers& buffers = buffers_.at({s.station, s.memory});
    const OnDevice here(station.gpu().index);
    buffers.wipe(station, s.way, s.bytes);
    int copies = 0;
    const Timed timed = s.memory == HostMemory::pinned ? behind_gate(s, station, buffers, copies)
                                                       : by_host_clock(s, station, buffers, copies);
    return sample_of(static_cast<double>(s.bytes), timed,
                     buffers.has_arrived(station, s.way, s.bytes, copies));
  }

  void finish() override {
    buffers_.clear();
    stations_.clear();
  }

 private:
  void add(std::size_t station, Way way, std::size_t bytes) {
    settings_.push_back({station, way, bytes, HostMemory::pinned, By::engine});
    if (station > 0) return;
    settings_.push_back({station, way, bytes, HostMemory::pinned, By::multiprocessors});
    settings_.push_back({station, way, bytes, HostMemory::pageable, By::engine});
  }

  static Timed behind_gate(const Setting& s, Station& station, const CopyBuffers& buffers,
                           int& copies) {
    const Needs needs = s.by == By::engine ? Needs::link : Needs::multiprocessors;
    return station.time(Seconds(0.1), needs, [&](int i) {
      ++copies;
      if (s.by == By::engine) return copy_once(station.stream(), buffers, s.way, s.bytes, i);
      const std::size_t offset = buffers.place(i, s.bytes);
      copy_by_threads(station.stream(), buffers.target(s.way, offset),
                      buffers.source(s.way, offset), s.bytes, station.gpu().multiprocessors);
    });
  }

  static Timed by_host_clock(const Setting& s, Station& station, const CopyBuffers& buffers,
                             int& copies) {
    const auto copy_next = [&] {
      const std::size_t offset = buffers.place(copies++, s.bytes);
      copy_now(station.gpu().index, buffers.target(s.way, offset), buffers.source(s.way, offset),
               s.bytes);
    };
    copy_next();
    Timed timed;
    int counted = 0;
    const auto begin = std::chrono::steady_clock::now();
    while (timed.in_all < Seconds(0.1)) {
      copy_next();
      ++counted;
      timed.in_all = since(begin);
    }
    timed.each = timed.in_all / (1.0 * counted);
    timed.spoiled = station.look(Needs::link);
    station.recover(timed.spoiled);
    return timed;
  }

  std::vector<GpuFacts> gpus_;
  std::uint32_t seed_;
  std::vector<Setting> settings_;
  std::vector<Station> stations_;
  std::map<std::pair<std::size_t, HostMemory>, CopyBuffers> buffers_;
};

}  // namespace

std::string why_no_copies(const calib::Setup&) { return why_no_gpu(); }
std::unique_ptr<calib::Bench> make_copies(const calib::Setup& setup) {
  return std::make_unique<CopyBench>(setup);
}

}  // namespace tidegate::cuda
