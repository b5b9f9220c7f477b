#include "validate/log/steady.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "calib/fit/statistics.hpp"

namespace tidegate {
namespace {

std::vector<double> values_of(const LoggedSeries& series, const std::string& name,
                              std::int32_t rank) {
  std::vector<double> values;
  const auto at = series.find(name);
  if (at == series.end()) return values;
  for (const Logged& l : at->second) {
    if (l.rank == rank) values.push_back(l.value);
  }
  return values;
}

// Seconds by iteration, or what is proportional to them.
std::vector<double> durations(const TrainingLog& log, std::int32_t rank) {
  for (const char* name : {"iteration", "phases", "forward", "backward", "update"}) {
    if (auto values = values_of(log.series, name, rank); !values.empty()) return values;
  }
  std::vector<double> values = values_of(log.series, "samples_per_second", rank);
  for (double& v : values) v = v > 0 ? 1 / v : 0;
  return values;
}

bool is_memory(const std::string& name) {
  return name == "gpu_allocated" || name == "gpu_reserved" || name == "host_used";
}

// The last `share` of what `rank` logged; lines that come every tenth iteration shrink alike.
LoggedSeries without_beginning(const LoggedSeries& all, std::int32_t rank, double skipped) {
  LoggedSeries rest;
  for (const auto& [name, logged] : all) {
    if (is_memory(name)) {
      rest[name] = logged;
      continue;
    }
    std::vector<Logged> mine;
    for (const Logged& l : logged) {
      if (l.rank == rank) mine.push_back(l);
    }
    if (mine.empty()) continue;
    const auto skip = std::min(
        mine.size() - 1,
        static_cast<std::size_t>(std::ceil(skipped * static_cast<double>(mine.size()) - 1e-9)));
    rest[name].assign(mine.begin() + static_cast<std::ptrdiff_t>(skip), mine.end());
  }
  return rest;
}

std::set<std::int32_t> ranks_of(const TrainingLog& log) {
  std::set<std::int32_t> ranks;
  for (const char* name :
       {"iteration", "phases", "forward", "backward", "update", "samples_per_second"}) {
    const auto at = log.series.find(name);
    if (at == log.series.end()) continue;
    for (const Logged& l : at->second) ranks.insert(l.rank);
  }
  return ranks;
}

}  // namespace

std::size_t iterations_to_skip(std::span<const double> seconds) {
  const std::size_t n = seconds.size();
  if (n < 2) return 0;
  const std::span<const double> later = seconds.subspan(n / 2);
  const double usual = calib::median(later);
  const double allowed = std::max(0.1 * usual, 3 * calib::spread(later));
  std::size_t skip = n >= 6 ? 2 : 1;
  while (skip < n / 2 && std::abs(seconds[skip] - usual) > allowed) ++skip;
  return std::min(skip, std::max<std::size_t>(n / 2, 1));
}

Measured measured(std::span<const double> values) {
  return {.median = calib::median(values),
          .low = calib::quantile(values, 0.25),
          .high = calib::quantile(values, 0.75),
          .most = *std::ranges::max_element(values),
          .values = values.size()};
}

SteadyLog steady_part(const TrainingLog& log) {
  SteadyLog steady;
  const std::set<std::int32_t> ranks = ranks_of(log);
  steady.ranks = static_cast<std::int32_t>(ranks.size());
  if (!ranks.empty()) steady.rank = *ranks.begin();
  double longest = 0, shortest = 0;
  for (const std::int32_t rank : ranks) {
    const std::vector<double> seconds = durations(log, rank);
    const std::size_t skip = iterations_to_skip(seconds);
    const double median = calib::median(std::span(seconds).subspan(skip));
    shortest = shortest == 0 ? median : std::min(shortest, median);
    if (median <= longest) continue;
    longest = median;
    steady.rank = rank;
    steady.iterations = seconds.size();
    steady.skipped = skip;
  }
  if (shortest > 0) steady.rank_ratio = longest / shortest;
  const double share = steady.iterations == 0 ? 0
                                              : static_cast<double>(steady.skipped) /
                                                    static_cast<double>(steady.iterations);
  steady.series = without_beginning(log.series, steady.rank, share);
  steady.timers = without_beginning(log.timers, steady.rank, share);
  return steady;
}

}  // namespace tidegate
