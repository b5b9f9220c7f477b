#include "sim/run/interval.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <random>
#include <thread>

#include "models/base/error.hpp"
#include "models/profile.hpp"
#include "models/uncertainty.hpp"
#include "sim/engine/simulate.hpp"
#include "sim/run/steady_time.hpp"

namespace tidegate {
namespace {

Machine drawn_machine(const Scenario& scenario, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr int attempts = 100;
  for (int i = 1;; ++i) {
    try {
      return read_machine(drawn(scenario.hardware, random));
    } catch (const InputError&) {
      if (i == attempts) throw;
    }
  }
}

Seconds drawn_time(const Scenario& scenario, const Plan& plan, std::uint64_t seed) {
  const Machine machine = machine_here(scenario, drawn_machine(scenario, seed));
  return steady_time(plan, price(plan, machine), machine.resources());
}

double deviation_of_logs(const std::vector<Seconds>& times) {
  const auto n = static_cast<double>(times.size());
  double mean = 0, squares = 0;
  for (const Seconds t : times) mean += std::log(t.value()) / n;
  for (const Seconds t : times) squares += std::pow(std::log(t.value()) - mean, 2);
  return std::sqrt(squares / (n - 1));
}

}  // namespace

std::vector<Seconds> drawn_times(const Scenario& scenario, const Prediction& prediction,
                                 const IntervalOptions& options) {
  std::vector<Seconds> times(static_cast<std::size_t>(options.draws));
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failure;
  std::atomic<bool> has_failed = false;
  const auto work = [&] {
    for (std::size_t i = next++; i < times.size() && !has_failed; i = next++) {
      try {
        // Far apart, so that two seeds share no draw.
        times[i] = drawn_time(scenario, prediction.plan, options.seed * 1'000'003 + i);
      } catch (...) {
        if (!has_failed.exchange(true)) failure = std::current_exception();
      }
    }
  };
  const auto cores = static_cast<std::int32_t>(std::max(1U, std::thread::hardware_concurrency()));
  const std::int32_t threads = options.threads > 0 ? options.threads : std::min(cores, 16);
  std::vector<std::jthread> crew;
  for (std::int32_t t = 1; t < std::min(threads, options.draws); ++t) crew.emplace_back(work);
  work();
  crew.clear();
  if (failure) std::rethrow_exception(failure);
  return times;
}

void add_interval(const Scenario& scenario, Prediction& prediction,
                  const IntervalOptions& options) {
  const Known count = known(scenario.hardware);
  Report::Range range{.model_deviation = options.model_deviation,
                      .draws = options.draws,
                      .seed = options.seed,
                      .uncertain = count.uncertain,
                      .silent = count.silent};
  if (options.draws > 1 && count.uncertain > 0) {
    range.profile_deviation = deviation_of_logs(drawn_times(scenario, prediction, options));
  }
  const double now = prediction.report.iteration_time.value();
  const double reach = nine_in_ten * std::hypot(range.profile_deviation, range.model_deviation);
  range.low = Seconds(now * std::exp(-reach));
  range.high = Seconds(now * std::exp(reach));
  prediction.report.range = range;
}

}  // namespace tidegate
