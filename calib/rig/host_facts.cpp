#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>
#include <sstream>
#include <utility>

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/core.h>

#include "calib/rig/cgroup.hpp"
#include "calib/rig/readings.hpp"
#include "calib/rig/system_text.hpp"

namespace tidegate::rig {
namespace {

namespace fs = std::filesystem;

// FNV-1a of 64 bits (Fowler, Noll, Vo): short, and the same on every machine.
std::string hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return fmt::format("{:016x}", hash).substr(0, 12);
}

std::string unquoted(std::string text) {
  std::erase(text, '"');
  return text;
}

bool has_flag(const std::string& flags, const std::string& flag) {
  const auto words = detail::words_of(flags);
  return std::ranges::find(words, flag) != words.end();
}

// "VMware, Inc. VMware7,1" or the like, where the firmware says; a guest without firmware tables
// (Firecracker) shows only the processor's flag.
std::string hypervisor_of(const std::string& flags) {
  if (const auto type = detail::line_of("/sys/hypervisor/type"); !type.empty()) return type;
  if (!has_flag(flags, "hypervisor")) return "none";
  const std::string dmi = "/sys/class/dmi/id/";
  const auto vendor = detail::line_of(dmi + "sys_vendor");
  const auto product = detail::line_of(dmi + "product_name");
  if (vendor.empty() && product.empty()) return "unnamed";
  return vendor + " " + product;
}

std::int32_t allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<std::int32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

std::int32_t physical_cores(std::int32_t otherwise) {
  std::set<std::string> cores;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/cpu", error)) {
    const auto siblings = detail::line_of(entry.path() / "topology/thread_siblings_list");
    if (!siblings.empty()) cores.insert(siblings);
  }
  return cores.empty() ? otherwise : static_cast<std::int32_t>(cores.size());
}

std::int32_t numa_nodes() {
  std::int32_t count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename();
    count += name.starts_with("node") && name.size() > 4 && name[4] >= '0' && name[4] <= '9';
  }
  return std::max(count, 1);
}

Bytes meminfo(const std::string& text, const std::string& key) {
  return Bytes(1024 * std::strtod(detail::value_of(text, key).c_str(), nullptr));
}

// sysfs: the size of the cache of the highest level, "32768K".
Bytes last_level_cache() {
  std::int64_t best = 0;
  double size = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string at = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    const std::int64_t level = detail::number_of(at + "level", 0);
    if (level <= best) continue;
    best = level;
    const std::string text = detail::line_of(at + "size");
    const double unit = text.ends_with("M") ? 1 << 20 : text.ends_with("K") ? 1 << 10 : 1;
    size = unit * std::strtod(text.c_str(), nullptr);
  }
  return Bytes(size);
}

Bytes locked_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return Bytes(std::numeric_limits<double>::infinity());
  return Bytes(static_cast<double>(limit.rlim_cur));
}

void read_processor(const std::string& cpuinfo, HostFacts& facts) {
  facts.cpu = detail::value_of(cpuinfo, "model name");
  std::string flags = detail::value_of(cpuinfo, "flags");
  if (flags.empty()) flags = detail::value_of(cpuinfo, "Features");
  facts.hypervisor = hypervisor_of(flags);
  facts.has_avx2 = has_flag(flags, "avx2");
  facts.has_avx512 = has_flag(flags, "avx512f");
  facts.has_bf16 = has_flag(flags, "avx512_bf16") || has_flag(flags, "bf16");
  facts.has_f16c = has_flag(flags, "f16c");
}

void count_cores(HostFacts& facts) {
  facts.logical_cores = allowed_cores();
  facts.quota_cores = detail::quota_cores();
  if (facts.quota_cores > 0) {
    const auto quota = static_cast<std::int32_t>(std::max(1.0, facts.quota_cores));
    facts.logical_cores = std::min(facts.logical_cores, quota);
  }
  facts.physical_cores = physical_cores(facts.logical_cores);
  facts.numa_nodes = numa_nodes();
}

}  // namespace

HostFacts host_facts(bool identify) {
  HostFacts facts;
  utsname system{};
  uname(&system);
  read_processor(detail::text_of("/proc/cpuinfo"), facts);
  if (facts.cpu.empty()) facts.cpu = system.machine;
  facts.id = identify ? system.nodename : hash_of(detail::line_of("/etc/machine-id") + facts.cpu);
  facts.kernel = fmt::format("{} {}", system.sysname, system.release);
  facts.distribution =
      unquoted(detail::value_of(detail::text_of("/etc/os-release"), "PRETTY_NAME"));
  facts.clock_source =
      detail::line_of("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  facts.huge_pages =
      detail::chosen_of(detail::line_of("/sys/kernel/mm/transparent_hugepage/enabled"));
  facts.governor = detail::line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  count_cores(facts);
  const std::string memory = detail::text_of("/proc/meminfo");
  facts.memory = meminfo(memory, "MemTotal");
  facts.memory_available = meminfo(memory, "MemAvailable");
  facts.locked_limit = locked_limit();
  facts.last_level_cache = last_level_cache();
  return facts;
}

}  // namespace tidegate::rig
