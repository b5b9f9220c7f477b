#include <algorithm>
#include <map>

#include "calib/cuda/benches.hpp"
#include "calib/cuda/kernels.hpp"
#include "calib/cuda/settings.hpp"
#include "calib/cuda/shim/cublas_lt.hpp"
#include "calib/cuda/station.hpp"

#include "calib/cuda/values.hpp"
#include "calib/cuda/verify.hpp"
#include "models/base/error.hpp"

// Matrix products as a framework runs them: fixed power (whatever clock the limit allows),
// uniform data, operands that were not just used. Dense, beta 0.
namespace tidegate::cuda {
namespace {

constexpr int candidates = 8;
constexpr int checked_entries = 4;
constexpr double memory_share = 0.2;  // of the GPU's memory, for operands

struct Setting {
  std::size_t station = 0;
  Gemm shape;
  bool is_best = false;
};

// Operands of one product within the arena, 256-byte aligned as cuBLASLt likes them.
struct Layout {
  std::size_t x = 0, w = 0, y = 0, in_all = 0;
};

std::size_t aligned(double bytes) { return (static_cast<std::size_t>(bytes) + 255) / 256 * 256; }

Layout layout_of(const Gemm& g) {
  const double each = bytes_per_element(g.dtype), out = bytes_per_element(result_type(g.dtype));
  const auto m = static_cast<double>(g.m), n = static_cast<double>(g.n),
             k = static_cast<double>(g.k);
  Layout layout;
  layout.w = aligned(m * k * each);
  layout.y = layout.w + aligned(n * k * each);
  layout.in_all = layout.y + aligned(m * n * out);
  return layout;
}

double flops(const Gemm& g) {
  return 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
}

std::vector<Gemm> shapes_for(calib::Effort effort, const GpuFacts& gpu) {
  std::vector<DType> types{DType::bf16, DType::fp32};
  if (10 * gpu.major + gpu.minor >= 89) types.push_back(DType::fp8);
  std::vector<Gemm> shapes;
  for (const DType type : types) {
    // Frameworks multiply in fp32 so rarely that one list of shapes is enough.
    if (type != DType::fp32)
      std::ranges::copy(training_shapes(effort, type), std::back_inserter(shapes));
    if (type != DType::fp8)
      std::ranges::copy(grid_shapes(effort, type), std::back_inserter(shapes));
  }
  std::erase_if(shapes, [&](const Gemm& g) {
    return static_cast<double>(layout_of(g).in_all) > memory_share * gpu.memory.value();
  });
  return shapes;
}

class GemmBench : public calib::Bench {
 public:
  explicit GemmBench(const calib::Setup& setup) : gpus_(gpu_facts()), seed_(setup.seed) {
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      std::vector<Gemm> shapes = shapes_for(setup.effort, gpus_[g]);
      // GPUs of a node are of one kind: the others show with one large shape whether they keep
      // up.
      if (g > 0) shapes = {{4096, 4096, 4096, 1, DType::bf16}};
      for (const Gemm& shape : shapes) {
        for (const bool is_best : {false, true}) settings_.push_back({g, shape, is_best});
      }
    }
  }

  std::vector<calib::Row> rows() const override {
    std::vector<calib::Row> rows;
    for (const auto& [g, shape, is_best] : settings_) {
      rows.push_back(gpu_row("gpu.gemm",
                             {{"m", shape.m},
                              {"n", shape.n},
                              {"k", shape.k},
                              {"dtype", 8 * bytes_per_element(shape.dtype)},
                              {"pick", is_best ? 1 : 0}},
                             calib::Unit::flops_per_second, gpus_[g],
                             gemm_ceiling(gpus_[g], shape.dtype)));
    }
    return rows;
  }

  void prepare() override {
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      std::size_t bytes = 0;
      for (const Setting& s : settings_) {
        if (s.station == g) bytes = std::max(bytes, layout_of(s.shape).in_all);
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
    const Matmul matmul(station.gpu().index, setting.shape, candidates);
    const int sets = fill(setting);
    const int algorithm = setting.is_best ? best_of(setting, matmul, sets) : 0;
    const Timed timed = station.time(Seconds(0.1), Needs::multiprocessors,
                                     [&](int i) { enqueue(setting, matmul, algorithm, i % sets); });
    return sample_of(flops(setting.shape), timed, is_right(setting));
  }

  void finish() override {
    arenas_.clear();
    stations_.clear();
  }

 private:
  std::byte* at(const Setting& setting, int set, std::size_t offset) {
    return arenas_[setting.station].data() +
           static_cast<std::size_t>(set) * layout_of(setting.shape).in_all + offset;
  }

  // Operands anew, because other rows use the same memory; results wiped. Returns the sets in
  // turn.
  int fill(const Setting& setting) {
    const Station& station = stations_[setting.station];
    const Gemm& g = setting.shape;
    const Layout layout = layout_of(g);
    const auto footprint = static_cast<double>(layout.in_all);
    const int fit =
        static_cast<int>(static_cast<double>(arenas_[setting.station].size()) / footprint);
    const int sets = std::min(fit, rotation(station.gpu().l2.value(), 2, footprint));
    for (int s = 0; s < sets; ++s) {
      const auto seed = static_cast<std::uint32_t>(seed_) + 2 * static_cast<std::uint32_t>(s);
      fill_uniform(station.stream(), at(setting, s, layout.x), g.dtype,
                   static_cast<std::size_t>(g.m * g.k), seed);
      fill_uniform(station.stream(), at(setting, s, layout.w), g.dtype,
                   static_cast<std::size_t>(g.n * g.k), seed + 1);
      set_bytes(station.stream(), at(setting, s, layout.y), 0xFF, layout.in_all - layout.y);
    }
    station.stream().wait();
    return sets;
  }

  void enqueue(const Setting& setting, const Matmul& matmul, int algorithm, int set) {
    const Layout layout = layout_of(setting.shape);
    matmul.enqueue(stations_[setting.station].stream(), algorithm, at(setting, set, layout.x),
                   at(setting, set, layout.w), at(setting, set, layout.y));
  }

  // Chosen once by times that are not used again: the best of noisy times is too good.
  int best_of(const Setting& setting, const Matmul& matmul, int sets) {
    const Gemm& g = setting.shape;
    const auto key = std::tuple(setting.station, g.m, g.n, g.k, g.dtype);
    if (const auto known = best_.find(key); known != best_.end()) return known->second;
    int best = 0;
    Seconds least{1e9};
    for (int a = 0; a < matmul.algorithms(); ++a) {
      const Timed timed =
          stations_[setting.station].time(Seconds(0.02), Needs::multiprocessors,
                                          [&](int i) { enqueue(setting, matmul, a, i % sets); });
      if (timed.each < least) best = a;
      least = std::min(least, timed.each);
    }
    return best_[key] = best;
  }

  std::vector<std::byte> fetch(const Setting& setting, std::size_t offset, std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    copy_now(gpus_[setting.station].index, data.data(), at(setting, 0, offset), bytes);
    return data;
  }

  // A few entries of the first set, spread over the result, against dot products of what is
  // stored.
  bool is_right(const Setting& setting) {
    const Gemm& g = setting.shape;
    const Layout layout = layout_of(g);
    const DType out = result_type(g.dtype);
    const auto line =
        static_cast<std::size_t>(static_cast<double>(g.k) * bytes_per_element(g.dtype));
    const auto each = static_cast<std::size_t>(bytes_per_element(out));
    for (std::uint64_t c = 0; c < checked_entries; ++c) {
      const std::size_t i = word(2 * c, 99) % static_cast<std::uint32_t>(g.m);
      const std::size_t j = word(2 * c + 1, 99) % static_cast<std::uint32_t>(g.n);
      const auto y =
          fetch(setting, layout.y + (i * static_cast<std::size_t>(g.n) + j) * each, each);
      const Dot exact = dot(fetch(setting, layout.x + i * line, line),
                            fetch(setting, layout.w + j * line, line), g.dtype);
      if (!looks_uniform(exact) || !agrees(decode(y, out, 0), exact, g.dtype, out)) return false;
    }
    return true;
  }

  std::vector<GpuFacts> gpus_;
  std::uint64_t seed_;
  std::vector<Setting> settings_;
  std::vector<Station> stations_;
  std::vector<DeviceBuffer> arenas_;
  std::map<std::tuple<std::size_t, std::int64_t, std::int64_t, std::int64_t, DType>, int> best_;
};

}  // namespace

std::string why_no_gemm(const calib::Setup&) {
  const std::string reason = why_no_gpu();
  return reason.empty() ? why_no_cublas_lt() : reason;
}

std::unique_ptr<calib::Bench> make_gemm(const calib::Setup& setup) {
  return std::make_unique<GemmBench>(setup);
}

}  // namespace tidegate::cuda
