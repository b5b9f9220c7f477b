#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/kernels/kernels.hpp"

/// fma: FLOP/s of multiply-adds in registers. What it gains with threads says how many cores there
/// really are: siblings of one core, or a quota, gain less.
namespace tidegate::calib {
namespace {

class Cores : public Bench {
 public:
  explicit Cores(const Setup& setup) : threads_(thread_counts(setup)) {
    const Clock clock = highest_clock();
    for (const int threads : threads_) {
      rows_.push_back(cpu_row("fma", {{"threads", threads}}, Unit::flops_per_second,
                              flops_ceiling(clock, threads)));
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  Sample sample(std::size_t row) override {
    constexpr std::int64_t rounds = 500'000;
    double flops = 0;
    bool is_exact = true;
    const Timed timed = run_for(rows_[row].target, [&] {
      double sum = 0;
      flops = cpu::fma_chain(rounds, threads_[row], sum);
      is_exact = is_exact && 2 * sum == flops;
    });
    return {.value = timed.rate(flops), .elapsed = timed.elapsed, .is_verified = is_exact};
  }

 private:
  std::vector<int> threads_;
  std::vector<Row> rows_;
};

}  // namespace

std::unique_ptr<Bench> make_cores(const Setup& setup) { return std::make_unique<Cores>(setup); }

}  // namespace tidegate::calib
