#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "calib/fit/statistics.hpp"
#include "calib/measure/protocol.hpp"

namespace tidegate::calib {

StoppingRule::StoppingRule(double precision, std::size_t least, std::size_t most)
    : precision_(precision), least_(least), most_(most) {}

void StoppingRule::add(double value) { values_.push_back(value); }

double StoppingRule::half_width() const {
  if (values_.size() < 2) return std::numeric_limits<double>::infinity();
  const Interval range = median_interval(values_);
  const double middle = median(values_);
  if (!(middle > 0)) return std::numeric_limits<double>::infinity();
  return (range.high - range.low) / 2 / middle;
}

bool StoppingRule::is_content() const {
  return values_.size() >= least_ && half_width() <= precision_;
}

std::string spoiled_by(const Row& row, const rig::Foreign& foreign, const GateLimits& limits) {
  if (row.gate == Gate::none) return "";
  const bool is_cpu = row.gate == Gate::cpu;
  const double cores = is_cpu ? limits.cpu_cores : limits.io_cores + foreign.counting;
  if (foreign.cores > cores) return fmt::format("{:.2f} cores busy with other work", foreign.cores);
  if (foreign.steal > limits.steal) {
    return fmt::format("the hypervisor took {:.0f} % of the cores' time", 100 * foreign.steal);
  }
  if (foreign.throttled > 0) {
    return fmt::format("the quota of the control group stopped us in {} periods",
                       foreign.throttled);
  }
  if (const double traffic = foreign.bytes_per_second.value_or(0);
      !is_cpu && traffic > limits.io_bytes) {
    return fmt::format("{:.0f} MB/s of other traffic on {}", traffic / 1e6, row.device);
  }
  return "";
}

double Block::value() const {
  std::vector<double> values;
  for (const TakenSample& s : samples) {
    if (s.spoiled.empty()) values.push_back(s.value);
  }
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : median(values);
}

}  // namespace tidegate::calib
