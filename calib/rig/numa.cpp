#include "calib/rig/numa.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/core.h>

#include "calib/rig/system_text.hpp"
#include "models/base/error.hpp"

namespace tidegate::rig {
namespace {

constexpr unsigned long most_nodes = 1024;

bool may_use(std::int32_t cpu, const cpu_set_t& allowed) {
  return cpu < CPU_SETSIZE && CPU_ISSET(static_cast<std::size_t>(cpu), &allowed);
}

}  // namespace

std::vector<std::int32_t> cpu_list(const std::string& text) {
  std::vector<std::int32_t> all;
  const char* at = text.c_str();
  while (*at >= '0' && *at <= '9') {
    char* rest = nullptr;
    const long first = std::strtol(at, &rest, 10);
    const long last = *rest == '-' ? std::strtol(rest + 1, &rest, 10) : first;
    for (long cpu = first; cpu <= last; ++cpu) all.push_back(static_cast<std::int32_t>(cpu));
    at = *rest == ',' ? rest + 1 : rest;
  }
  return all;
}

std::vector<NumaNode> numa_nodes(const std::string& system) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::vector<NumaNode> nodes;
  const std::string folder = system + "/devices/system/node/";
  for (const std::int32_t id : cpu_list(detail::line_of(folder + "has_memory"))) {
    NumaNode node{id, cpu_list(detail::line_of(fmt::format("{}node{}/cpulist", folder, id)))};
    std::erase_if(node.cpus, [&allowed](std::int32_t cpu) { return !may_use(cpu, allowed); });
    nodes.push_back(std::move(node));
  }
  return nodes;
}

OnCpu::OnCpu(std::int32_t cpu) {
  CPU_ZERO(&before_);
  sched_getaffinity(0, sizeof(before_), &before_);
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<std::size_t>(cpu), &only);
  if (sched_setaffinity(0, sizeof(only), &only) != 0) {
    throw MachineError(fmt::format("sched_setaffinity to CPU {}: {}", cpu, strerror(errno)));
  }
}
OnCpu::~OnCpu() { sched_setaffinity(0, sizeof(before_), &before_); }

MemoryOn::MemoryOn(std::int32_t node) {
  std::array<unsigned long, most_nodes / (8 * sizeof(unsigned long))> mask{};
  const auto bit = static_cast<std::size_t>(node);
  mask.at(bit / (8 * sizeof(unsigned long))) |= 1UL << bit % (8 * sizeof(unsigned long));
  if (syscall(SYS_set_mempolicy, MPOL_BIND, mask.data(), most_nodes) != 0) {
    throw MachineError(fmt::format("set_mempolicy to node {}: {}", node, strerror(errno)));
  }
}
MemoryOn::~MemoryOn() { syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0); }

std::int32_t node_of(const void* address) {
  int node = -1;
  const long code =
      syscall(SYS_get_mempolicy, &node, nullptr, 0, address, MPOL_F_NODE | MPOL_F_ADDR);
  return code == 0 ? node : -1;
}

}  // namespace tidegate::rig
