#include "calib/cuda/facts.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include "calib/cuda/shim/handles.hpp"
#include "calib/cuda/shim/nvml.hpp"

namespace tidegate::cuda {
namespace {

// 0 when the runtime does not know the attribute.
int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, device) == cudaSuccess) return value;
  cudaGetLastError();
  return 0;
}

std::string bus_id_of(int device) {
  std::array<char, 32> text{};
  if (cudaDeviceGetPCIBusId(text.data(), text.size(), device) != cudaSuccess) return "";
  std::string id = text.data();
  std::ranges::transform(id, id.begin(), [](unsigned char c) { return std::tolower(c); });
  return id;
}

int numa_node_of(const std::string& bus_id) {
  std::ifstream file("/sys/bus/pci/devices/" + bus_id + "/numa_node");
  int node = -1;
  return file >> node ? node : -1;
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

void ask_nvml(const Nvml& nvml, GpuFacts& gpu) {
  const Nvml::Handle handle = nvml.device(gpu.bus_id);
  gpu.driver = nvml.driver_version();
  gpu.mig = nvml.mig(handle);
  gpu.power_limit = nvml.power_limit(handle).value_or(0);
  gpu.sm_clock = std::max(gpu.sm_clock, nvml.largest_sm_clock(handle).value_or(0));
  if (const auto link = nvml.link(handle)) {
    gpu.pcie_generation = link->generation;
    gpu.pcie_width = link->width;
  }
}

GpuFacts facts_of(int device, const Nvml& nvml) {
  GpuFacts gpu;
  cudaDeviceProp properties{};
  gpu.index = device;
  if (cudaGetDeviceProperties(&properties, device) == cudaSuccess) {
    gpu.name = properties.name;
    gpu.memory = Bytes(static_cast<double>(properties.totalGlobalMem));
    gpu.l2 = Bytes(static_cast<double>(properties.l2CacheSize));
    gpu.multiprocessors = properties.multiProcessorCount;
    gpu.major = properties.major;
    gpu.minor = properties.minor;
    gpu.bus_bits = properties.memoryBusWidth;
    gpu.has_coherent_link = properties.pageableMemoryAccessUsesHostPageTables != 0;
  }
  gpu.sm_clock = 1e3 * attribute(cudaDevAttrClockRate, device);
  gpu.memory_clock = 1e3 * attribute(cudaDevAttrMemoryClockRate, device);
  gpu.bus_id = bus_id_of(device);
  gpu.numa_node = numa_node_of(gpu.bus_id);
  int runtime = 0;
  if (cudaRuntimeGetVersion(&runtime) == cudaSuccess) gpu.runtime = version_text(runtime);
  ask_nvml(nvml, gpu);
  return gpu;
}

}  // namespace

std::vector<GpuFacts> gpu_facts() {
  std::vector<GpuFacts> all;
  const int count = device_count();
  if (count == 0) return all;
  const Nvml nvml;
  for (int device = 0; device < count; ++device) all.push_back(facts_of(device, nvml));
  cudaGetLastError();
  return all;
}

}  // namespace tidegate::cuda
