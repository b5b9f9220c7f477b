#include <algorithm>
#include <limits>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"

/// timer: seconds of one reading of the clock that all samples are timed with.
/// timer.resolution: the least difference of two readings that is not zero.
namespace tidegate::calib {
namespace {

class Timer : public Bench {
 public:
  std::vector<Row> rows() const override {
    std::vector<Row> all = {cpu_row("timer", {}, Unit::seconds, {}),
                            cpu_row("timer.resolution", {}, Unit::seconds, {})};
    for (Row& row : all) row.target = Seconds(0.05);
    return all;
  }

  Sample sample(std::size_t row) override {
    constexpr std::int64_t readings = 100'000;
    double least = std::numeric_limits<double>::infinity();
    bool is_monotonic = true;
    const Timed timed = run_for(Seconds(0.05), [&] {
      auto before = std::chrono::steady_clock::now();
      for (std::int64_t i = 0; i < readings; ++i) {
        const auto after = std::chrono::steady_clock::now();
        const double step = std::chrono::duration<double>(after - before).count();
        if (step > 0) least = std::min(least, step);
        is_monotonic = is_monotonic && step >= 0;
        before = after;
      }
    });
    const double cost = 1 / timed.rate(static_cast<double>(readings));
    return {
        .value = row == 0 ? cost : least, .elapsed = timed.elapsed, .is_verified = is_monotonic};
  }
};

}  // namespace

std::unique_ptr<Bench> make_timer(const Setup&) { return std::make_unique<Timer>(); }

}  // namespace tidegate::calib
