#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include <sched.h>

#include <fmt/core.h>

#include "calib/cuda/facts.hpp"

namespace tidegate::cuda {
namespace {

double lane_rate(int generation) {
  switch (generation) {
    case 3:
      return 8e9 / 8 * 128 / 130;
    case 4:
      return 16e9 / 8 * 128 / 130;
    case 5:
      return 32e9 / 8 * 128 / 130;
    case 6:
      return 64e9 / 8 * 236 / 256;
    default:
      return 0;
  }
}

// FLOPs per clock and multiprocessor; 0 when not known.
double flops_per_clock(int major, int minor, DType type) {
  const int capability = 10 * major + minor;
  if (type == DType::fp32) return capability == 80 ? 128 : capability > 80 ? 256 : 0;
  double sixteen = 0;
  if (capability == 80) sixteen = 2048;
  if (capability == 86 || capability == 89) sixteen = 1024;
  if (capability == 90) sixteen = 4096;
  if (capability == 100) sixteen = 8192;
  if (type != DType::fp8) return sixteen;
  return capability >= 89 ? 2 * sixteen : 0;
}

std::vector<int> affinity() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(static_cast<std::size_t>(i), &set)) cpus.push_back(i);
  }
  return cpus;
}

void set_affinity(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<std::size_t>(cpu), &set);
  sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace

Ceiling pcie_ceiling(const GpuFacts& gpu) {
  const double rate = lane_rate(gpu.pcie_generation) * gpu.pcie_width;
  if (rate == 0 || gpu.has_coherent_link) return {};
  return {rate, fmt::format("PCIe {}.0 x{}", gpu.pcie_generation, gpu.pcie_width)};
}

Ceiling memory_ceiling(const GpuFacts& gpu) {
  const double rate = 2 * gpu.memory_clock * gpu.bus_bits / 8;
  if (rate == 0) return {};
  return {rate, fmt::format("{} bit x {:.0f} MHz x 2", gpu.bus_bits, 1e-6 * gpu.memory_clock)};
}

Ceiling gemm_ceiling(const GpuFacts& gpu, DType type) {
  const double per_clock = flops_per_clock(gpu.major, gpu.minor, type);
  const double rate = per_clock * gpu.multiprocessors * gpu.sm_clock;
  if (rate == 0) return {};
  return {rate, fmt::format("{} multiprocessors x {:.0f} MHz x {:.0f} FLOP", gpu.multiprocessors,
                            1e-6 * gpu.sm_clock, per_clock)};
}

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream range(part);
    int first = 0, last = 0;
    char dash = 0;
    if (!(range >> first)) return {};
    last = first;
    if (range >> dash && (dash != '-' || !(range >> last) || last < first)) return {};
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<int> cpus_near(const GpuFacts& gpu) {
  std::ifstream file("/sys/bus/pci/devices/" + gpu.bus_id + "/local_cpulist");
  std::string line;
  if (!std::getline(file, line)) return {};
  return parse_cpu_list(line);
}

NearGpu::NearGpu(const GpuFacts& gpu) {
  const std::vector<int> now = affinity();
  std::vector<int> near;
  std::ranges::copy_if(cpus_near(gpu), std::back_inserter(near),
                       [&](int cpu) { return std::ranges::find(now, cpu) != now.end(); });
  if (near.empty()) return;
  before_ = now;
  set_affinity(near);
}

NearGpu::~NearGpu() {
  if (!before_.empty()) set_affinity(before_);
}

}  // namespace tidegate::cuda
