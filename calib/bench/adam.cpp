#include <algorithm>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/kernels/kernels.hpp"
#include "calib/kernels/reference.hpp"
#include "calib/rig/host_buffer.hpp"

/// adam: parameters per second of one AdamW step, the engine's own kernel. `gradient` is a number
/// of DType: 0 fp32, 1 bf16, 2 fp16; with 16 bits the new parameters are written in 16 bits too.
///
///   fp32       16 bytes read (p, m, v, g), 12 written: 28 per parameter
///   bf16/fp16  14 read, 14 written, 2 fetched before the store of the copy: 30
namespace tidegate::calib {
namespace {

constexpr std::size_t least = std::size_t{64} << 10, most = std::size_t{64} << 20;
constexpr std::size_t held = 20;  // p, m, v and g in fp32, g and p in 16 bits
constexpr double moved = 28;
// A step in the middle of training; weights that nothing makes subnormal.
const cpu::AdamOptions options = {.step = 1000};

// A few pieces of the state, which the plain loop takes through the same steps.
struct Witness {
  explicit Witness(std::size_t start, std::size_t n) : at(start), p(n), m(n), v(n), g(n), half(n) {}
  std::size_t at;
  std::vector<float> p, m, v, g;
  std::vector<cpu::half> half;
};

class Adam : public Bench {
 public:
  explicit Adam(const Setup& setup)
      : parameters_(std::min(fitting(setup, memory_part::adam, held), most)) {
    const bool is_quick = setup.effort == Effort::quick;
    const std::size_t factor = is_quick ? 256 : setup.effort == Effort::standard ? 16 : 4;
    const Clock clock = highest_clock();
    for (const std::size_t n : sizes(least, parameters_, factor)) {
      for (const int threads : thread_counts(setup)) {
        add(setup, clock, {n, threads, DType::fp32});
        add(setup, clock, {n, threads, DType::bf16});
        if (!is_quick) add(setup, clock, {n, threads, DType::fp16});
      }
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    const std::size_t wide = parameters_ * sizeof(float), narrow = parameters_ * sizeof(cpu::half);
    p_ = rig::HostBuffer(wide);
    m_ = rig::HostBuffer(wide);
    v_ = rig::HostBuffer(wide);
    g_ = rig::HostBuffer(wide);
    half_ = rig::HostBuffer(narrow);
    out_ = rig::HostBuffer(narrow);
    fill_keyed(p_.as<float>(), 6);
    fill_keyed(m_.as<float>(), 7);
    fill_keyed(v_.as<float>(), 8);
    fill_keyed(g_.as<float>(), 9);
    const auto half = half_.as<cpu::half>();
    // Bits of numbers that are positive and ordinary in both formats.
    for (std::size_t i = 0; i < half.size(); ++i)
      half[i] = static_cast<cpu::half>(0x3800 + i % 1024);
  }

  Sample sample(std::size_t row) override {
    const Setting& s = settings_[row];
    std::vector<Witness> witnesses = witnesses_of(s.parameters);
    const Timed timed = run_for(rows_[row].target, [&] { step(s); });
    return {.value = timed.rate(static_cast<double>(s.parameters)),
            .elapsed = timed.elapsed,
            .is_verified = std::ranges::all_of(
                witnesses, [&](Witness& w) { return agrees(w, s.type, timed.count); })};
  }

  void finish() override { p_ = {}, m_ = {}, v_ = {}, g_ = {}, half_ = {}, out_ = {}; }

 private:
  struct Setting {
    std::size_t parameters;
    int threads;
    DType type;
  };

  void add(const Setup& setup, const Clock& clock, const Setting& s) {
    const auto n = static_cast<double>(s.parameters);
    const Settings at = {
        {"parameters", n}, {"threads", s.threads}, {"gradient", static_cast<double>(s.type)}};
    rows_.push_back(cpu_row("adam", at, Unit::per_second,
                            memory_ceiling(setup, clock, s.threads, Bytes(16 * n), moved)));
    settings_.push_back(s);
  }

  void step(const Setting& s) {
    const std::size_t n = s.parameters;
    const auto p = p_.as<float>().first(n), m = m_.as<float>().first(n);
    const auto v = v_.as<float>().first(n), g = g_.as<float>().first(n);
    if (s.type == DType::fp32) return cpu::adam(p, m, v, g, options, s.threads);
    cpu::adam(p, m, v, half_.as<cpu::half>().first(n), s.type, out_.as<cpu::half>().first(n),
              options, s.threads);
  }

  std::vector<Witness> witnesses_of(std::size_t n) const {
    const std::size_t size = std::min<std::size_t>(n, 37);
    std::vector<Witness> all;
    for (const std::size_t at : {std::size_t{0}, (n - size) / 2, n - size}) {
      Witness& w = all.emplace_back(at, size);
      std::ranges::copy(p_.as<float>().subspan(at, size), w.p.begin());
      std::ranges::copy(m_.as<float>().subspan(at, size), w.m.begin());
      std::ranges::copy(v_.as<float>().subspan(at, size), w.v.begin());
      std::ranges::copy(g_.as<float>().subspan(at, size), w.g.begin());
      std::ranges::copy(half_.as<cpu::half>().subspan(at, size), w.half.begin());
    }
    return all;
  }

  bool agrees(Witness& w, DType type, std::int64_t steps) const {
    std::vector<cpu::half> out(w.p.size());
    if (type != DType::fp32) cpu::reference::cast(w.half, type, w.g);
    for (std::int64_t i = 0; i < steps; ++i) cpu::reference::adam(w.p, w.m, w.v, w.g, options);
    const std::size_t size = w.p.size();
    bool is_same = std::ranges::equal(w.p, p_.as<float>().subspan(w.at, size)) &&
                   std::ranges::equal(w.m, m_.as<float>().subspan(w.at, size)) &&
                   std::ranges::equal(w.v, v_.as<float>().subspan(w.at, size));
    if (type == DType::fp32) return is_same;
    cpu::reference::cast(w.p, type, out);
    return is_same && std::ranges::equal(out, out_.as<cpu::half>().subspan(w.at, size));
  }

  std::size_t parameters_;
  std::vector<Row> rows_;
  std::vector<Setting> settings_;
  rig::HostBuffer p_, m_, v_, g_, half_, out_;
};

}  // namespace

std::unique_ptr<Bench> make_adam(const Setup& setup) { return std::make_unique<Adam>(setup); }

}  // namespace tidegate::calib
