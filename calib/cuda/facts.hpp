#pragma once

#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/work.hpp"

/// What a GPU says of itself, and what follows from that: ceilings that no measurement may exceed.
namespace tidegate::cuda {

struct GpuFacts {
  int index = 0;
  std::string name;
  std::string bus_id;  ///< "0000:17:00.0"
  Bytes memory, l2;
  int multiprocessors = 0;
  int major = 0, minor = 0;                 ///< compute capability
  double sm_clock = 0;                      ///< Hz, the highest by default; 0 when not told
  double memory_clock = 0;                  ///< Hz; 0 when not told
  int bus_bits = 0;                         ///< width of the memory bus
  int pcie_generation = 0, pcie_width = 0;  ///< 0 when not told
  bool has_coherent_link = false;  ///< the CPU's page tables (NVLink-C2C), so PCIe is no ceiling
  int numa_node = -1;              ///< -1: not told
  std::string driver, runtime;     ///< versions
  double power_limit = 0;          ///< W; 0 when not told
  std::string mig;                 ///< "on", "off", "not told"
};

/// In CUDA's order. Empty without a driver or without CUDA at build; never throws.
std::vector<GpuFacts> gpu_facts();

/// A figure that physics sets, and where it comes from; value 0 when it cannot be told.
struct Ceiling {
  double value = 0;
  std::string from;
};

/// One direction: lanes × transfer rate × encoding. 8, 16 and 32 GT/s with 128b/130b (PCIe 3, 4,
/// 5), 64 GT/s in flits of 256 bytes with 236 of payload (PCIe 6). None on a coherent link.
Ceiling pcie_ceiling(const GpuFacts& gpu);
/// Bus width × clock × 2 (double data rate).
Ceiling memory_ceiling(const GpuFacts& gpu);
/// Multiprocessors × highest clock × FLOPs per clock of a multiprocessor, dense. For 16 bits
/// 2048 (8.0), 1024 (8.6, 8.9), 4096 (9.0), 8192 (10.0); twice that for fp8 from 8.9 on. These are
/// NVIDIA's datasheet peaks divided by multiprocessors and boost clock: A100 312 TFLOP/s / 108 /
/// 1.41 GHz, L40S 362 / 142 / 2.52, H100 SXM 989 / 132 / 1.83. fp32 without tensor cores: 128
/// (8.0), else 256 (CUDA C++ Programming Guide, throughput of native arithmetic instructions).
Ceiling gemm_ceiling(const GpuFacts& gpu, DType type);

/// "0-15,32-47" as numbers; empty when it is no such list.
std::vector<int> parse_cpu_list(const std::string& text);
/// CPUs near the GPU (/sys/bus/pci/devices/<bus_id>/local_cpulist); empty when not told.
std::vector<int> cpus_near(const GpuFacts& gpu);

/// Keeps this thread on CPUs near a GPU while it lives, so that host memory it touches first lies
/// there. Does nothing where that cannot be told.
class NearGpu {
 public:
  explicit NearGpu(const GpuFacts& gpu);
  ~NearGpu();
  NearGpu(const NearGpu&) = delete;
  NearGpu& operator=(const NearGpu&) = delete;

 private:
  std::vector<int> before_;
};

}  // namespace tidegate::cuda
