#include "calib/cuda/benches.hpp"
#include "calib/cuda/kernels.hpp"
#include "calib/cuda/station.hpp"

// Copies from one GPU's memory to another's, for each ordered pair: straight where the driver lets
// them see each other, else staged by the driver through the host.
namespace tidegate::cuda {
namespace {

struct Setting {
  std::size_t from = 0, to = 0, bytes = 0;
};

constexpr std::size_t largest = std::size_t{256} << 20;

class PeerBench : public calib::Bench {
 public:
  explicit PeerBench(const calib::Setup& setup)
      : gpus_(gpu_facts()), seed_(static_cast<std::uint32_t>(setup.seed)) {
    std::vector<std::size_t> sizes{largest};
    if (setup.effort != calib::Effort::quick) sizes = {65536, std::size_t{4} << 20, largest};
    for (std::size_t from = 0; from < gpus_.size(); ++from) {
      for (std::size_t to = 0; to < gpus_.size(); ++to) {
        if (from == to) continue;
        for (const std::size_t bytes : sizes) settings_.push_back({from, to, bytes});
      }
    }
  }

  std::vector<calib::Row> rows() const override {
    std::vector<calib::Row> rows;
    for (const Setting& s : settings_) {
      calib::Row row = gpu_row("gpu.peer", {}, calib::Unit::bytes_per_second, gpus_[s.from], {});
      row.at = {{"bytes", static_cast<double>(s.bytes)},
                {"from", static_cast<double>(s.from)},
                {"to", static_cast<double>(s.to)},
                {"direct", can_access(gpus_[s.from].index, gpus_[s.to].index) ? 1 : 0}};
      rows.push_back(row);
    }
    return rows;
  }

  void prepare() override {
    for (const GpuFacts& gpu : gpus_) {
      stations_.emplace_back(gpu);
      sources_.emplace_back(gpu.index, largest);
      targets_.emplace_back(gpu.index, largest);
      const OnDevice here(gpu.index);
      fill_words(stations_.back().stream(), sources_.back().as<std::uint32_t>(), largest / 4,
                 seed_);
      stations_.back().stream().wait();
    }
    for (const GpuFacts& from : gpus_) {
      for (const GpuFacts& to : gpus_) {
        if (from.index != to.index && can_access(from.index, to.index)) {
          enable_access(from.index, to.index);
        }
      }
    }
  }

  calib::Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    Station& from = stations_[s.from];
    Station& to = stations_[s.to];
    {
      const OnDevice there(to.gpu().index);
      set_bytes(to.stream(), targets_[s.to].data(), 0, s.bytes);
      to.stream().wait();
    }
    const OnDevice here(from.gpu().index);
    const Timed timed = from.time(Seconds(0.1), Needs::link, [&](int) {
      copy_to_peer(from.stream(), to.gpu().index, targets_[s.to].data(), sources_[s.from].data(),
                   s.bytes);
    });
    const bool is_right = to.faults([&](unsigned long long* count) {
      count_wrong_words(to.stream(), targets_[s.to].as<std::uint32_t>(), s.bytes / 4, seed_, count);
    }) == 0;
    return sample_of(static_cast<double>(s.bytes), timed, is_right);
  }

  void finish() override {
    targets_.clear();
    sources_.clear();
    stations_.clear();
  }

 private:
  std::vector<GpuFacts> gpus_;
  std::uint32_t seed_;
  std::vector<Setting> settings_;
  std::vector<Station> stations_;
  std::vector<DeviceBuffer> sources_, targets_;
};

}  // namespace

std::string why_no_peer(const calib::Setup&) {
  const std::string reason = why_no_gpu();
  if (!reason.empty()) return reason;
  return device_count() < 2 ? "one GPU: it has no peer" : "";
}
std::unique_ptr<calib::Bench> make_peer(const calib::Setup& setup) {
  return std::make_unique<PeerBench>(setup);
}

}  // namespace tidegate::cuda
