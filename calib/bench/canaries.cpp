#include "calib/bench/canaries.hpp"

#include <cstring>

#include "calib/bench/sweeps.hpp"
#include "calib/kernels/kernels.hpp"
#include "calib/rig/host_buffer.hpp"

namespace tidegate::calib {
namespace {

class FmaCanary : public Bench {
 public:
  explicit FmaCanary(int threads)
      : threads_(threads),
        row_(cpu_row("canary.fma", {{"threads", threads}}, Unit::flops_per_second,
                     flops_ceiling(highest_clock(), threads))) {}
  std::vector<Row> rows() const override { return {row_}; }

  Sample sample(std::size_t) override {
    double flops = 0;
    bool is_exact = true;
    const Timed timed = run_for(row_.target, [&] {
      double sum = 0;
      flops = cpu::fma_chain(500'000, threads_, sum);
      is_exact = is_exact && 2 * sum == flops;
    });
    return {.value = timed.rate(flops), .elapsed = timed.elapsed, .is_verified = is_exact};
  }

 private:
  int threads_;
  Row row_;
};

class CopyCanary : public Bench {
 public:
  explicit CopyCanary(const Setup& setup)
      : row_(cpu_row("canary.copy", {{"bytes", static_cast<double>(size)}}, Unit::bytes_per_second,
                     memory_ceiling(setup, highest_clock(), 1, Bytes(2.0 * size), 2))) {}
  std::vector<Row> rows() const override { return {row_}; }
  void prepare() override {
    from_ = rig::HostBuffer(size);
    to_ = rig::HostBuffer(size);
    fill_keyed(from_.as<float>(), 11);
  }

  Sample sample(std::size_t) override {
    const auto target = to_.as<float>();
    for (const std::size_t i : spots(target.size())) target[i] = -1;
    const Timed timed = run_for(row_.target, [&] { std::memcpy(to_.data(), from_.data(), size); });
    bool is_right = true;
    for (const std::size_t i : spots(target.size())) is_right &= target[i] == keyed(i, 11);
    return {.value = timed.rate(static_cast<double>(size)),
            .elapsed = timed.elapsed,
            .is_verified = is_right};
  }
  void finish() override { from_ = {}, to_ = {}; }

 private:
  static constexpr std::size_t size = std::size_t{64} << 20;
  Row row_;
  rig::HostBuffer from_, to_;
};

}  // namespace

std::vector<std::unique_ptr<Bench>> cpu_canaries(const Setup& setup) {
  std::vector<std::unique_ptr<Bench>> all;
  all.push_back(std::make_unique<FmaCanary>(std::max(setup.threads, 1)));
  all.push_back(std::make_unique<CopyCanary>(setup));
  return all;
}

}  // namespace tidegate::calib
