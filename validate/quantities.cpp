#include "validate/quantities.hpp"

#include <algorithm>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

// Of several nodes the first stands for all.
const Report::Pool& pool_of(const Report& report, std::string_view name) {
  const std::string of_first = "node0." + std::string(name);
  const auto at = std::ranges::find_if(
      report.pools, [&](const Report::Pool& p) { return p.name == name || p.name == of_first; });
  ensure(at != report.pools.end(), "a report has the pools of its node");
  return *at;
}

double reserved_of(const Report::Pool& gpu) {
  ensure(gpu.allocator.has_value(), "a GPU's pool has an allocator");
  return gpu.allocator->steady_reserved_peak.value();
}

double phase(const PhaseTimes& phases, Phase p) {
  return phases[static_cast<std::size_t>(p)].value();
}

// States live as long as the run.
double activation_peak(const Report::Pool& gpu) {
  double bytes = gpu.steady_peak.value();
  for (const auto& [name, held] : gpu.owners) {
    for (const std::string_view state : {"parameters", "parameter shards", "optimizer states"}) {
      if (name == state) bytes -= static_cast<double>(held);
    }
  }
  return bytes;
}

double offloaded(const Report& report) {
  const auto at = std::ranges::find(report.resources, "gpu0.d2h", &Report::Resource::name);
  return at == report.resources.end() ? 0 : at->bytes.value();
}

double stored(const Report& report) {
  double bytes = 0;
  for (const Report::Path& path : report.paths) bytes += path.written.value();
  return bytes;
}

}  // namespace

std::map<std::string, double> predicted_quantities(const Report& report) {
  const Iteration& first = report.iterations.front();
  const double both = phase(report.phases, Phase::forward) + phase(report.phases, Phase::backward);
  return {{"iteration", report.iteration_time.value()},
          {"forward", phase(report.phases, Phase::forward)},
          {"backward", phase(report.phases, Phase::backward)},
          {"update", phase(report.phases, Phase::update)},
          {"first_iteration", report.first_iteration_time.value()},
          {"first_forward", phase(first.phases, Phase::forward)},
          {"first_backward", phase(first.phases, Phase::backward)},
          {"first_update", phase(first.phases, Phase::update)},
          {"gpu_peak", pool_of(report, "gpu0").steady_peak.value()},
          {"gpu_reserved", reserved_of(pool_of(report, "gpu0"))},
          {"host_peak", pool_of(report, "host").steady_peak.value()},
          {"activation_peak", activation_peak(pool_of(report, "gpu0"))},
          {"offloaded", offloaded(report)},
          {"stored", stored(report)},
          {"write_bandwidth", offloaded(report) / (both / 2)}};
}

}  // namespace tidegate
