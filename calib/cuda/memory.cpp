#include <algorithm>
#include <cmath>

#include "calib/cuda/benches.hpp"
#include "calib/cuda/kernels.hpp"
#include "calib/cuda/settings.hpp"
#include "calib/cuda/station.hpp"
#include "calib/cuda/values.hpp"
#include "calib/cuda/verify.hpp"

// Memory-bound kernels. Buffers rotate over at least twice the L2 cache, so that small sizes are
// read from memory too: a norm that finds its input in the cache is a quarter faster.
namespace tidegate::cuda {
namespace {

enum class Kernel { triad, norm, gelu, adam };

// Bytes per element: read + written, and held.
struct Shape {
  double traffic = 0, held = 0;
};
Shape shape_of(Kernel kernel) {
  switch (kernel) {
    case Kernel::triad:
      return {12, 12};  // fp32: b, c in, a out
    case Kernel::norm:
    case Kernel::gelu:
      return {4, 4};  // bf16: x in, y out
    case Kernel::adam:
      return {28, 16};  // fp32: p, m, v, g in; p, m, v out
  }
  return {};
}

constexpr float triad_scale = 3;
constexpr int checked = 8;

// A whole number of norm's rows, at least one.
std::size_t elements_of(Kernel kernel, double traffic) {
  const double rows = traffic / shape_of(kernel).traffic / norm_width;
  return norm_width * static_cast<std::size_t>(std::max(1.0, std::round(rows)));
}

struct Setting {
  std::size_t station = 0;
  Kernel kernel = Kernel::triad;
  std::size_t elements = 0;
  double traffic() const { return shape_of(kernel).traffic * static_cast<double>(elements); }
  std::size_t held() const { return static_cast<std::size_t>(shape_of(kernel).held) * elements; }
};

double gelu_of(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

// adam_step of kernels.cu, in fp32.
struct AdamState {
  float p = 0, m = 0, v = 0;
  void step(float g) {
    m = 0.9F * m + (1 - 0.9F) * g;
    v = 0.999F * v + (1 - 0.999F) * g * g;
    p = p * (1 - 1e-3F * 0.01F) - 1e-3F * (m / (1 - 0.9F)) / (std::sqrt(v / (1 - 0.999F)) + 1e-8F);
  }
};

bool is_near(double a, double b, double relative, double absolute) {
  return std::abs(a - b) <= relative * std::abs(b) + absolute;
}

class MemoryBench : public calib::Bench {
 public:
  explicit MemoryBench(const calib::Setup& setup)
      : gpus_(gpu_facts()), seed_(static_cast<std::uint32_t>(setup.seed)) {
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      auto sizes = traffic_sizes(setup.effort, 0.25 * gpus_[g].memory.value());
      if (g > 0) sizes = {sizes.back()};
      for (const Kernel kernel : {Kernel::triad, Kernel::norm, Kernel::gelu, Kernel::adam}) {
        for (const std::int64_t size : sizes) {
          settings_.push_back({g, kernel, elements_of(kernel, static_cast<double>(size))});
        }
      }
    }
  }

  std::vector<calib::Row> rows() const override {
    std::vector<calib::Row> rows;
    for (const Setting& s : settings_) {
      rows.push_back(gpu_row(
          "gpu.memory", {{"kernel", static_cast<int>(s.kernel)}, {"bytes", s.traffic()}},
          calib::Unit::bytes_per_second, gpus_[s.station], memory_ceiling(gpus_[s.station])));
    }
    return rows;
  }

  void prepare() override {
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      std::size_t bytes = 0;
      for (const Setting& s : settings_) {
        if (s.station == g) bytes = std::max(bytes, s.held());
      }
      stations_.emplace_back(gpus_[g]);
      arenas_.emplace_back(gpus_[g].index,
                           bytes + static_cast<std::size_t>(2 * gpus_[g].l2.value()));
    }
  }

  calib::Sample sample(std::size_t row) override {
    const Setting& setting = settings_[row];
    Station& station = stations_[setting.station];
    const OnDevice here(station.gpu().index);
    const int fit = static_cast<int>(arenas_[setting.station].size() / setting.held());
    const int sets =
        std::min(fit, rotation(station.gpu().l2.value(), 2, static_cast<double>(setting.held())));
    for (int s = 0; s < sets; ++s) fill(setting, s);
    station.stream().wait();
    int launches = 0;
    const Timed timed = station.time(Seconds(0.1), Needs::multiprocessors, [&](int i) {
      ++launches;
      launch(setting, i % sets);
    });
    // Set 0 was used by launches 0, sets, 2·sets, …
    return sample_of(setting.traffic(), timed, is_right(setting, (launches + sets - 1) / sets));
  }

  void finish() override {
    arenas_.clear();
    stations_.clear();
  }

 private:
  // Part `part` of a set, for elements of `width` bytes.
  std::byte* at(const Setting& setting, int set, std::size_t part, std::size_t width) {
    return arenas_[setting.station].data() + static_cast<std::size_t>(set) * setting.held() +
           part * setting.elements * width;
  }
  float* floats(const Setting& setting, int set, std::size_t part) {
    return reinterpret_cast<float*>(at(setting, set, part, 4));
  }

  void fill(const Setting& setting, int set) {
    const Stream& stream = stations_[setting.station].stream();
    const std::size_t n = setting.elements;
    switch (setting.kernel) {
      case Kernel::triad:
        set_bytes(stream, at(setting, set, 0, 4), 0xFF, 4 * n);
        fill_uniform(stream, at(setting, set, 1, 4), DType::fp32, n, seed_);
        fill_uniform(stream, at(setting, set, 2, 4), DType::fp32, n, seed_ + 1);
        break;
      case Kernel::norm:
      case Kernel::gelu:
        fill_uniform(stream, at(setting, set, 0, 2), DType::bf16, n, seed_);
        set_bytes(stream, at(setting, set, 1, 2), 0xFF, 2 * n);
        break;
      case Kernel::adam:
        fill_uniform(stream, at(setting, set, 0, 4), DType::fp32, n, seed_);
        set_bytes(stream, at(setting, set, 1, 4), 0, 8 * n);
        fill_uniform(stream, at(setting, set, 3, 4), DType::fp32, n, seed_ + 1);
        break;
    }
  }

  void launch(const Setting& s, int set) {
    const Stream& stream = stations_[s.station].stream();
    switch (s.kernel) {
      case Kernel::triad:
        return triad(stream, floats(s, set, 1), floats(s, set, 2), triad_scale, floats(s, set, 0),
                     s.elements);
      case Kernel::norm:
        return rms_norm(stream, at(s, set, 0, 2), at(s, set, 1, 2), s.elements / norm_width);
      case Kernel::gelu:
        return gelu(stream, at(s, set, 0, 2), at(s, set, 1, 2), s.elements);
      case Kernel::adam:
        return adam(stream, floats(s, set, 0), floats(s, set, 1), floats(s, set, 2),
                    floats(s, set, 3), s.elements);
    }
  }

  std::vector<double> fetch(const Setting& s, std::size_t part, DType type, std::size_t first,
                            std::size_t count) {
    const auto width = static_cast<std::size_t>(bytes_per_element(type));
    std::vector<std::byte> raw(count * width);
    copy_now(gpus_[s.station].index, raw.data(), at(s, 0, part, width) + first * width, raw.size());
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = decode(raw, type, i);
    return values;
  }
  double one(const Setting& s, std::size_t part, DType type, std::size_t i) {
    return fetch(s, part, type, i, 1).front();
  }

  bool is_right(const Setting& setting, int launches) {
    for (std::uint64_t c = 0; c < checked; ++c) {
      const std::size_t i = word(c, 98) % setting.elements;
      if (!is_right_at(setting, i, launches)) return false;
    }
    return true;
  }

  bool is_right_at(const Setting& s, std::size_t i, int launches) {
    switch (s.kernel) {
      case Kernel::triad:
        return one(s, 0, DType::fp32, i) ==
               static_cast<double>(std::fma(triad_scale, uniform(i, seed_ + 1), uniform(i, seed_)));
      case Kernel::norm:
        return is_normed_at(s, i);
      case Kernel::gelu:
        // Two roundings to bf16 of relative 2^-8 at most.
        return is_near(one(s, 1, DType::bf16, i), gelu_of(one(s, 0, DType::bf16, i)), 0x1p-7, 1e-6);
      case Kernel::adam:
        return has_stepped_at(s, i, launches);
    }
    return false;
  }

  bool is_normed_at(const Setting& s, std::size_t i) {
    const std::size_t row = i / norm_width * norm_width;
    double squares = 0;
    for (const double x : fetch(s, 0, DType::bf16, row, norm_width)) squares += x * x;
    const double expected = one(s, 0, DType::bf16, i) / std::sqrt(squares / norm_width + 1e-5);
    return is_near(one(s, 1, DType::bf16, i), expected, 0x1p-7, 1e-6);
  }

  // The GPU fuses multiply-adds, the host does not: 1e-4 of the moments, a tenth of the way that
  // the parameter can have gone.
  bool has_stepped_at(const Setting& s, std::size_t i, int launches) {
    AdamState state{uniform(i, seed_), 0, 0};
    for (int step = 0; step < launches; ++step) state.step(uniform(i, seed_ + 1));
    return is_near(one(s, 1, DType::fp32, i), static_cast<double>(state.m), 1e-4, 1e-9) &&
           is_near(one(s, 2, DType::fp32, i), static_cast<double>(state.v), 1e-3, 1e-9) &&
           is_near(one(s, 0, DType::fp32, i), static_cast<double>(state.p), 1e-4, 1e-4 * launches);
  }

  std::vector<GpuFacts> gpus_;
  std::uint32_t seed_;
  std::vector<Setting> settings_;
  std::vector<Station> stations_;
  std::vector<DeviceBuffer> arenas_;
};

}  // namespace

std::string why_no_memory(const calib::Setup&) { return why_no_gpu(); }
std::unique_ptr<calib::Bench> make_memory(const calib::Setup& setup) {
  return std::make_unique<MemoryBench>(setup);
}

}  // namespace tidegate::cuda
