#include <algorithm>
#include <array>

#include "calib/cuda/benches.hpp"
#include "calib/cuda/copy_buffers.hpp"
#include "calib/cuda/kernels.hpp"
#include "calib/cuda/settings.hpp"
#include "calib/cuda/shim/cublas_lt.hpp"
#include "calib/cuda/station.hpp"

// What copies by the engines cost a matrix product, and what it costs them: each sample is one
// quadruple alone, beside, beside, alone.
namespace tidegate::cuda {
namespace {

enum class Victim { gemm, copy };
enum class Copies { h2d, d2h, both };

struct Setting {
  Victim victim = Victim::gemm;
  Copies copies = Copies::h2d;
  std::int64_t n = 4096;
};

constexpr std::size_t copy_bytes = std::size_t{64} << 20;
constexpr Seconds target{0.05};

class InterferenceBench : public calib::Bench {
 public:
  explicit InterferenceBench(const calib::Setup& setup)
      : gpu_(gpu_facts().front()), seed_(static_cast<std::uint32_t>(setup.seed)) {
    std::vector<std::int64_t> sizes{4096};
    if (setup.effort != calib::Effort::quick) sizes.push_back(8192);
    for (const Victim victim : {Victim::gemm, Victim::copy}) {
      for (const Copies copies : {Copies::h2d, Copies::d2h, Copies::both}) {
        for (const std::int64_t n : sizes) settings_.push_back({victim, copies, n});
      }
    }
  }

  std::vector<calib::Row> rows() const override {
    std::vector<calib::Row> rows;
    for (const Setting& s : settings_) {
      const char* name = s.victim == Victim::gemm ? "gpu.gemm_beside_copy" : "gpu.copy_beside_gemm";
      rows.push_back(
          gpu_row(name, {{"copy", static_cast<int>(s.copies)}, {"n", static_cast<double>(s.n)}},
                  calib::Unit::fraction, gpu_, {}));
    }
    return rows;
  }

  void prepare() override {
    const OnDevice here(gpu_.index);
    station_ = std::make_unique<Station>(gpu_);
    up_ = std::make_unique<Stream>(gpu_.index);
    down_ = std::make_unique<Stream>(gpu_.index);
    buffers_ = std::make_unique<CopyBuffers>(*station_, copy_bytes, HostMemory::pinned, seed_);
    constexpr std::size_t most = 8192 * 8192;
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      operands_[i] = DeviceBuffer(gpu_.index, 2 * most);
      fill_uniform(station_->stream(), operands_[i].data(), DType::bf16, most,
                   seed_ + static_cast<std::uint32_t>(i));
    }
    station_->stream().wait();
  }

  calib::Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    const OnDevice here(gpu_.index);
    const Matmul matmul(gpu_.index, {s.n, s.n, s.n, 1, DType::bf16}, 1);
    const auto gemm = [&](int) {
      matmul.enqueue(station_->stream(), 0, operands_[0].data(), operands_[1].data(),
                     operands_[2].data());
    };
    buffers_->wipe(*station_, Way::h2d, copy_bytes);
    buffers_->wipe(*station_, Way::d2h, copy_bytes);
    Timed timed;
    const double value = quadruple(s, gemm, timed);
    calib::Sample sample;
    sample.value = value;
    sample.elapsed = timed.in_all;
    sample.spoiled = timed.spoiled;
    sample.is_verified = have_arrived(s.copies);
    return sample;
  }

  void finish() override {
    for (DeviceBuffer& operand : operands_) operand = {};
    buffers_.reset();
    down_.reset();
    up_.reset();
    station_.reset();
  }

 private:
  bool have_arrived(Copies copies) const {
    return (copies == Copies::d2h || buffers_->has_arrived(*station_, Way::h2d, copy_bytes, 1)) &&
           (copies == Copies::h2d || buffers_->has_arrived(*station_, Way::d2h, copy_bytes, 1));
  }

  Lane copies(Way way, int count) {
    const Stream& stream = way == Way::h2d ? *up_ : *down_;
    return {&stream, count,
            [this, way, &stream](int i) { copy_once(stream, *buffers_, way, copy_bytes, i); }};
  }

  // The copies of a setting as lanes.
  std::vector<Lane> all_copies(Copies which, int count) {
    std::vector<Lane> lanes;
    if (which != Copies::d2h) lanes.push_back(copies(Way::h2d, count));
    if (which != Copies::h2d) lanes.push_back(copies(Way::d2h, count));
    return lanes;
  }

  double quadruple(const Setting& s, const std::function<void(int)>& gemm, Timed& timed) {
    GateOptions options;
    const Needs needs = s.victim == Victim::gemm ? Needs::multiprocessors : Needs::link;
    options.while_running = [&] {
      if (timed.spoiled.empty()) timed.spoiled = station_->look(needs);
    };
    gemm(0);
    station_->stream().wait();
    const auto gemms = [&](int count) { return Lane{&station_->stream(), count, gemm}; };
    const auto copy_lanes = [&](int count) { return all_copies(s.copies, count); };
    const Seconds one_gemm = longest({gemms(2)}, options) / 2;
    const Seconds one_copy = longest(copy_lanes(2), options) / 2;
    const int gemm_count = cut_for(target, one_gemm, most_queued / 4).operations;
    const int copy_count = cut_for(target, one_copy, most_queued / 4).operations;
    const auto alone = [&] {
      return s.victim == Victim::gemm ? longest({gemms(gemm_count)}, options)
                                      : longest(copy_lanes(copy_count), options);
    };
    const auto beside = [&] {
      return s.victim == Victim::gemm
                 ? time_covered(std::vector{gemms(gemm_count)}, copy_lanes, copy_count, options)
                 : time_covered(
                       copy_lanes(copy_count), [&](int count) { return std::vector{gemms(count)}; },
                       gemm_count, options);
    };
    const Seconds a1 = alone(), b1 = beside(), b2 = beside(), a2 = alone();
    timed.in_all = a1 + b1 + b2 + a2;
    station_->recover(timed.spoiled);
    return abba(a1, b1, b2, a2);
  }

  static Seconds longest(const std::vector<Lane>& lanes, const GateOptions& options) {
    return std::ranges::max(time_behind_gate(lanes, options));
  }

  GpuFacts gpu_;
  std::uint32_t seed_;
  std::vector<Setting> settings_;
  std::unique_ptr<Station> station_;
  std::unique_ptr<Stream> up_, down_;
  std::unique_ptr<CopyBuffers> buffers_;
  std::array<DeviceBuffer, 3> operands_;
};

}  // namespace

std::string why_no_interference(const calib::Setup& setup) { return why_no_gemm(setup); }
std::unique_ptr<calib::Bench> make_interference(const calib::Setup& setup) {
  return std::make_unique<InterferenceBench>(setup);
}

}  // namespace tidegate::cuda
