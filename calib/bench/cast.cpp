#include <algorithm>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/kernels/kernels.hpp"
#include "calib/rig/host_buffer.hpp"

/// cast: elements per second between fp32 and 16 bits. `from` and `to` are numbers of DType: 0
/// fp32, 1 bf16, 2 fp16. An element is 6 bytes read and written, and as many fetched before the
/// store as are written.
namespace tidegate::calib {
namespace {

constexpr std::size_t least = std::size_t{1} << 20, most = std::size_t{1} << 26;
constexpr double bytes_per_cast = 6;

class Cast : public Bench {
 public:
  explicit Cast(const Setup& setup)
      : elements_(std::min(fitting(setup, memory_part::cast, 6), most)) {
    const Clock clock = highest_clock();
    std::vector<std::size_t> lengths = {elements_};
    if (setup.effort != Effort::quick && least < elements_) lengths.push_back(least);
    for (const std::size_t n : lengths) {
      for (const int threads : thread_counts(setup)) {
        for (const DType type : {DType::bf16, DType::fp16}) {
          add(setup, clock, {n, threads, type, true});
          add(setup, clock, {n, threads, type, false});
        }
      }
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    wide_ = rig::HostBuffer(elements_ * sizeof(float));
    narrow_ = rig::HostBuffer(elements_ * sizeof(cpu::half));
  }

  Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    const auto wide = wide_.as<float>().first(s.elements);
    const auto narrow = narrow_.as<cpu::half>().first(s.elements);
    fill_source(s);
    const Timed timed = run_for(rows_[row].target, [&] {
      if (s.narrows) {
        cpu::cast(wide, s.type, narrow, s.threads);
      } else {
        cpu::cast(narrow, s.type, wide, s.threads);
      }
    });
    return {.value = timed.rate(static_cast<double>(s.elements)),
            .elapsed = timed.elapsed,
            .is_verified = holds(s)};
  }

  void finish() override { wide_ = {}, narrow_ = {}; }

 private:
  struct Setting {
    std::size_t elements;
    int threads;
    DType type;
    bool narrows;
  };

  void add(const Setup& setup, const Clock& clock, const Setting& s) {
    const auto code = static_cast<double>(s.type);
    const auto elements = static_cast<double>(s.elements);
    const Settings at = {{"elements", elements},
                         {"threads", s.threads},
                         {"from", s.narrows ? 0 : code},
                         {"to", s.narrows ? code : 0}};
    rows_.push_back(cpu_row(
        "cast", at, Unit::per_second,
        memory_ceiling(setup, clock, s.threads, Bytes(bytes_per_cast * elements), bytes_per_cast)));
    settings_.push_back(s);
  }

  static float value_at(std::size_t i) { return keyed(i, 5); }
  static cpu::half narrowed(DType type, float x) {
    return type == DType::bf16 ? cpu::to_bf16(x) : cpu::to_fp16(x);
  }
  static float widened(DType type, cpu::half bits) {
    return type == DType::bf16 ? cpu::from_bf16(bits) : cpu::from_fp16(bits);
  }

  // The source anew, and the target such that a cast left out is seen.
  void fill_source(const Setting& s) {
    const auto wide = wide_.as<float>().first(s.elements);
    const auto narrow = narrow_.as<cpu::half>().first(s.elements);
    for (std::size_t i = 0; i < s.elements; ++i) {
      wide[i] = s.narrows ? value_at(i) : -1;
      narrow[i] = s.narrows ? cpu::half{0} : narrowed(s.type, value_at(i));
    }
  }

  bool holds(const Setting& s) const {
    const auto wide = wide_.as<float>();
    const auto narrow = narrow_.as<cpu::half>();
    return std::ranges::all_of(spots(s.elements), [&](std::size_t i) {
      const cpu::half bits = narrowed(s.type, value_at(i));
      return s.narrows ? narrow[i] == bits : wide[i] == widened(s.type, bits);
    });
  }

  std::size_t elements_;
  std::vector<Row> rows_;
  std::vector<Setting> settings_;
  rig::HostBuffer wide_, narrow_;
};

}  // namespace

std::unique_ptr<Bench> make_cast(const Setup& setup) { return std::make_unique<Cast>(setup); }

}  // namespace tidegate::calib
