#include <algorithm>
#include <numeric>
#include <thread>

#include "calib/bench/cpu_benches.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/kernels/kernels.hpp"

/// noise: fixed-work quanta (Sottile and Minnich 2004) of about 1 ms on one thread and on all.
///
///   value = least quantum · number / sum of quanta
///
/// the part of the time in which work went at full speed; 1: nothing interrupts. The series holds
/// all quanta in seconds, thread after thread: quantiles of gaps, and their period, are read there.
namespace tidegate::calib {
namespace {

constexpr double quantum = 1e-3;

class Noise : public Bench {
 public:
  explicit Noise(const Setup& setup) {
    for (const int threads : {1, setup.threads}) {
      if (!threads_.empty() && threads <= threads_.back()) continue;
      threads_.push_back(threads);
      rows_.push_back(cpu_row("noise", {{"threads", threads}}, Unit::fraction,
                              {1 + 1e-9, "work cannot be done faster than its fastest"}));
      rows_.back().target = Seconds(1.0);
    }
  }

  std::vector<Row> rows() const override { return rows_; }

  void prepare() override {
    constexpr std::int64_t trial = 100'000;
    double least = quantum, sum = 0;
    for (int i = 0; i < 20; ++i) {
      least = std::min(least, run_for({}, [&] { cpu::fma_chain(trial, 1, sum); }).elapsed.value());
    }
    rounds_ = static_cast<std::int64_t>(static_cast<double>(trial) * quantum / least);
  }

  Sample sample(std::size_t row) override {
    const auto threads = static_cast<std::size_t>(threads_[row]);
    std::vector<std::vector<double>> quanta(threads);
    std::vector<double> sums(threads);
    const Timed timed = run_for({}, [&] {
      std::vector<std::jthread> all;
      for (std::size_t i = 1; i < threads; ++i) {
        all.emplace_back([&, i] { sums[i] = work(quanta[i], rows_[row].target); });
      }
      sums[0] = work(quanta[0], rows_[row].target);
    });
    std::vector<double> series;
    for (const auto& one : quanta) series.insert(series.end(), one.begin(), one.end());
    const double total = std::accumulate(series.begin(), series.end(), 0.0);
    const double done = std::accumulate(sums.begin(), sums.end(), 0.0);
    double once = 0;
    cpu::fma_chain(rounds_, 1, once);
    const auto count = static_cast<double>(series.size());
    return {.value = std::ranges::min(series) * count / total,
            .elapsed = timed.elapsed,
            .is_verified = done == once * count,
            .series = std::move(series)};
  }

 private:
  // Quanta until `target` has passed; returns the sum of all operations' results.
  double work(std::vector<double>& quanta, Seconds target) const {
    double all = 0;
    run_for(target, [&] {
      double sum = 0;
      const double begin = now();
      cpu::fma_chain(rounds_, 1, sum);
      quanta.push_back(now() - begin);
      all += sum;
    });
    return all;
  }

  std::vector<int> threads_;
  std::vector<Row> rows_;
  std::int64_t rounds_ = 1;
};

}  // namespace

std::unique_ptr<Bench> make_noise(const Setup& setup) { return std::make_unique<Noise>(setup); }

}  // namespace tidegate::calib
