#include <algorithm>
#include <numeric>

#include "calib/cuda/benches.hpp"
#include "calib/cuda/copy_buffers.hpp"
#include "calib/cuda/settings.hpp"
#include "calib/cuda/station.hpp"

// Copies that share: both directions of one link at once, and all GPUs at once, which may share a
// switch, a root port or the memory of a socket. Pinned memory, copy engines.
namespace tidegate::cuda {
namespace {

enum class Part { h2d, d2h, both, all_h2d, all_d2h };

struct Setting {
  std::size_t station = 0;  ///< of a duplex
  Part part = Part::both;
  std::size_t bytes = 0;
};

bool is_duplex(Part part) { return part == Part::h2d || part == Part::d2h || part == Part::both; }

class TogetherBench : public calib::Bench {
 public:
  explicit TogetherBench(const calib::Setup& setup)
      : gpus_(gpu_facts()), seed_(static_cast<std::uint32_t>(setup.seed)) {
    std::vector<std::int64_t> sizes{std::int64_t{64} << 20};
    if (setup.effort != calib::Effort::quick) sizes.push_back(std::int64_t{512} << 20);
    // Every GPU has two buffers.
    const Bytes room = setup.host.memory_available / static_cast<double>(gpus_.size());
    for (const std::int64_t size : that_fit(sizes, room)) {
      const auto bytes = static_cast<std::size_t>(size);
      for (std::size_t g = 0; g < gpus_.size(); ++g) {
        for (const Part part : {Part::h2d, Part::d2h, Part::both}) {
          settings_.push_back({g, part, bytes});
        }
      }
      if (gpus_.size() < 2) continue;
      for (const Part part : {Part::all_h2d, Part::all_d2h}) settings_.push_back({0, part, bytes});
    }
  }

  std::vector<calib::Row> rows() const override {
    std::vector<calib::Row> rows;
    for (const Setting& s : settings_) rows.push_back(row_of(s));
    return rows;
  }

  void prepare() override {
    std::size_t bytes = 0;
    for (const Setting& s : settings_) bytes = std::max(bytes, s.bytes);
    if (bytes == 0) return;
    for (const GpuFacts& gpu : gpus_) {
      stations_.emplace_back(gpu);
      other_.emplace_back(gpu.index);
    }
    for (Station& station : stations_) {
      buffers_.emplace_back(station, bytes, HostMemory::pinned, seed_);
    }
  }

  calib::Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    return is_duplex(s.part) ? duplex(s) : all_at_once(s);
  }

  void finish() override {
    buffers_.clear();
    other_.clear();
    stations_.clear();
  }

 private:
  calib::Row row_of(const Setting& s) const {
    const auto bytes = static_cast<double>(s.bytes);
    Ceiling ceiling = pcie_ceiling(gpus_[s.station]);
    if (is_duplex(s.part)) {
      if (s.part == Part::both) ceiling.value *= 2;
      return gpu_row("gpu.duplex", {{"bytes", bytes}, {"part", static_cast<int>(s.part)}},
                     calib::Unit::bytes_per_second, gpus_[s.station], ceiling);
    }
    const auto count = static_cast<double>(gpus_.size());
    ceiling.value *= count;
    calib::Row row = gpu_row(s.part == Part::all_h2d ? "gpu.all_h2d" : "gpu.all_d2h", {},
                             calib::Unit::bytes_per_second, gpus_.front(), ceiling);
    row.at = {{"bytes", bytes}, {"gpus", count}};
    return row;
  }

  // The one that is measured makes `copies`; the other as many more as keep it busy to the end.
  calib::Sample duplex(const Setting& s) {
    Station& station = stations_[s.station];
    CopyBuffers& buffers = buffers_[s.station];
    const int copies = copies_for(s.bytes);
    for (const Way way : {Way::h2d, Way::d2h}) buffers.wipe(station, way, s.bytes);
    const auto lane = [&](Way way, const Stream& stream, int count) {
      return Lane{&stream, count, [&, way](int i) { copy_once(stream, buffers, way, s.bytes, i); }};
    };
    const Way measured = s.part == Part::d2h ? Way::d2h : Way::h2d;
    const Way beside = measured == Way::h2d ? Way::d2h : Way::h2d;
    Timed timed;
    GateOptions options;
    options.while_running = [&] { timed.spoiled = station.look(Needs::link); };
    double bytes = static_cast<double>(s.bytes) * copies;
    if (s.part == Part::both) {
      const std::vector<Lane> lanes{lane(measured, station.stream(), copies),
                                    lane(beside, other_[s.station], copies)};
      timed.in_all = std::ranges::max(time_behind_gate(lanes, options));
      bytes *= 2;
    } else {
      timed.in_all = time_covered(
          std::vector{lane(measured, station.stream(), copies)},
          [&](int count) { return std::vector{lane(beside, other_[s.station], count)}; }, copies,
          options);
    }
    timed.each = timed.in_all;
    station.recover(timed.spoiled);
    const bool is_right = buffers.has_arrived(station, Way::h2d, s.bytes, copies) &&
                          buffers.has_arrived(station, Way::d2h, s.bytes, copies);
    return sample_of(bytes, timed, is_right);
  }

  calib::Sample all_at_once(const Setting& s) {
    const Way way = s.part == Part::all_h2d ? Way::h2d : Way::d2h;
    const int copies = copies_for(s.bytes);
    std::vector<Lane> lanes;
    for (std::size_t g = 0; g < stations_.size(); ++g) {
      buffers_[g].wipe(stations_[g], way, s.bytes);
      lanes.push_back({&stations_[g].stream(), copies, [this, g, way, &s](int i) {
                         copy_once(stations_[g].stream(), buffers_[g], way, s.bytes, i);
                       }});
    }
    Timed timed;
    GateOptions options;
    options.while_running = [&] { timed.spoiled = stations_.front().look(Needs::link); };
    timed.in_all = std::ranges::max(time_behind_gate(lanes, options));
    timed.each = timed.in_all;
    bool is_right = true;
    for (std::size_t g = 0; g < stations_.size(); ++g) {
      is_right = buffers_[g].has_arrived(stations_[g], way, s.bytes, copies) && is_right;
    }
    return sample_of(static_cast<double>(s.bytes * stations_.size()) * copies, timed, is_right);
  }

  // Some 4 GiB: 0.1 s and more on today's links.
  static int copies_for(std::size_t bytes) {
    return static_cast<int>((std::size_t{4} << 30) / bytes);
  }

  std::vector<GpuFacts> gpus_;
  std::uint32_t seed_;
  std::vector<Setting> settings_;
  std::vector<Station> stations_;
  std::vector<Stream> other_;
  std::vector<CopyBuffers> buffers_;
};

}  // namespace

std::string why_no_together(const calib::Setup&) { return why_no_gpu(); }
std::unique_ptr<calib::Bench> make_together(const calib::Setup& setup) {
  return std::make_unique<TogetherBench>(setup);
}

}  // namespace tidegate::cuda
