#include <algorithm>
#include <cmath>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/kernels/kernels.hpp"
#include "calib/kernels/reference.hpp"
#include "calib/rig/host_buffer.hpp"

/// norm: bytes read per second by the squared norm of fp32 gradients.
namespace tidegate::calib {
namespace {

constexpr std::size_t least = std::size_t{1} << 20, most = std::size_t{1} << 26;

class Norm : public Bench {
 public:
  explicit Norm(const Setup& setup)
      : elements_(std::min(fitting(setup, memory_part::norm, sizeof(float)), most)) {
    const Clock clock = highest_clock();
    std::vector<std::size_t> lengths = {elements_};
    if (setup.effort != Effort::quick && least < elements_) lengths.push_back(least);
    for (const std::size_t n : lengths) {
      for (const int threads : thread_counts(setup)) {
        const auto bytes = static_cast<double>(n * sizeof(float));
        rows_.push_back(cpu_row(
            "norm", {{"elements", static_cast<double>(n)}, {"threads", threads}},
            Unit::bytes_per_second, memory_ceiling(setup, clock, threads, Bytes(bytes), 1)));
        settings_.push_back({n, threads, 0});
      }
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    a_ = rig::HostBuffer(elements_ * sizeof(float));
    fill_keyed(a_.as<float>(), 10);
    bool finite = false;
    for (Setting& s : settings_) {
      s.norm = cpu::reference::squared_norm(a_.as<float>().first(s.elements), finite);
    }
  }

  Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    bool is_right = true;
    const Timed timed = run_for(rows_[row].target, [&] {
      bool finite = false;
      const double norm = cpu::squared_norm(a_.as<float>().first(s.elements), finite, s.threads);
      // The orders of adding differ: n roundings of 2^-53 at most.
      const double rounding = static_cast<double>(s.elements) * 0x1p-52 * s.norm;
      is_right = is_right && finite && std::abs(norm - s.norm) <= rounding;
    });
    return {.value = timed.rate(static_cast<double>(s.elements * sizeof(float))),
            .elapsed = timed.elapsed,
            .is_verified = is_right};
  }

  void finish() override { a_ = {}; }

 private:
  struct Setting {
    std::size_t elements;
    int threads;
    double norm;
  };

  std::size_t elements_;
  std::vector<Row> rows_;
  std::vector<Setting> settings_;
  rig::HostBuffer a_;
};

}  // namespace

std::unique_ptr<Bench> make_norm(const Setup& setup) { return std::make_unique<Norm>(setup); }

}  // namespace tidegate::calib
