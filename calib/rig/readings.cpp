#include "calib/rig/readings.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include <sys/resource.h>
#include <unistd.h>

#include "calib/rig/cgroup.hpp"
#include "calib/rig/system_text.hpp"

namespace tidegate::rig {
namespace {

constexpr std::int64_t sector = 512;  // the unit of /proc/diskstats, whatever the device has

// proc(5), stat: user nice system idle iowait irq softirq steal guest guest_nice, in clock ticks;
// guests' time is within user and nice.
void read_processors(Readings& readings) {
  const auto words = detail::words_of(detail::line_of("/proc/stat"));
  if (words.size() < 9) return;
  const auto seconds = [&](std::size_t column) {
    return std::strtod(words[column].c_str(), nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  };
  readings.busy_cores = seconds(1) + seconds(2) + seconds(3) + seconds(6) + seconds(7);
  readings.stolen = seconds(8);
  readings.cores = static_cast<std::int32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double own_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    sum += seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  }
  return sum;
}

// Documentation/admin-guide/iostats: major minor name reads merged sectors ms writes merged sectors
void read_device(const std::string& device, Readings& readings) {
  std::istringstream lines(detail::text_of("/proc/diskstats"));
  for (std::string line; std::getline(lines, line);) {
    const auto words = detail::words_of(line);
    if (words.size() < 10 || words[2] != device) continue;
    readings.device_read = sector * std::strtoll(words[5].c_str(), nullptr, 10);
    readings.device_written = sector * std::strtoll(words[9].c_str(), nullptr, 10);
  }
}

}  // namespace

Readings read_system(const std::string& device) {
  Readings readings;
  read_processors(readings);
  readings.own = own_seconds();
  readings.throttled = detail::throttled_periods();
  if (!device.empty()) read_device(device, readings);
  readings.at = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  return readings;
}

Traffic own_traffic() {
  Traffic traffic;
  std::istringstream lines(detail::text_of("/proc/self/io"));
  for (std::string line; std::getline(lines, line);) {
    const auto words = detail::words_of(line);
    if (words.size() != 2) continue;
    if (words[0] == "read_bytes:") traffic.read = std::strtoll(words[1].c_str(), nullptr, 10);
    if (words[0] == "write_bytes:") traffic.written = std::strtoll(words[1].c_str(), nullptr, 10);
  }
  return traffic;
}

namespace {

double counting_error(double own, double seconds, std::int32_t cores) {
  constexpr double tick = 0.01;  // of /proc/stat; the kernel's own may be shorter
  const double idle = std::max(0.0, 1 - own / (seconds * cores));
  return (2 * std::sqrt(std::max(0.0, own) * idle * tick) + 2 * tick) / seconds;
}

}  // namespace

Foreign foreign(const Readings& before, const Readings& after, std::int64_t own_read,
                std::int64_t own_written) {
  const double seconds = 1e-9 * static_cast<double>(after.at - before.at);
  Foreign foreign;
  if (seconds <= 0) return foreign;
  const double own = after.own - before.own;
  foreign.cores = std::max(0.0, (after.busy_cores - before.busy_cores - own) / seconds);
  foreign.counting = counting_error(own, seconds, after.cores);
  foreign.steal = std::max(0.0, (after.stolen - before.stolen) / (seconds * after.cores));
  if (before.device_read >= 0 && after.device_read >= 0) {
    const auto read = after.device_read - before.device_read - own_read;
    const auto written = after.device_written - before.device_written - own_written;
    const auto beyond = std::max<std::int64_t>(read, 0) + std::max<std::int64_t>(written, 0);
    foreign.bytes_per_second = static_cast<double>(beyond) / seconds;
  }
  if (before.throttled >= 0 && after.throttled >= 0) {
    foreign.throttled = after.throttled - before.throttled;
  }
  return foreign;
}

}  // namespace tidegate::rig
