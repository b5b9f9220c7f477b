#pragma once

#include <vector>

#include "models/machine.hpp"

/// A machine with round numbers: two GPUs, one NUMA node each, one drive.
namespace tidegate::toy {

using namespace tidegate::literals;

/// 1 TFLOP/s in 16 bit, 100 GB/s memory, 10 GB/s links, no overheads, all efficiencies 1.
inline Gpu gpu() {
  Gpu g;
  g.name = "toy";
  g.memory = 10_GB;
  g.peak_16 = 1_TFLOPs;
  g.peak_32 = 0.5_TFLOPs;
  g.memory_bandwidth = 100_GBps;
  g.gemm_efficiency = Curve(1);
  g.attention_efficiency = Curve(1);
  g.memory_efficiency = Curve(1);
  g.h2d = 10_GBps;
  g.d2h = 10_GBps;
  return g;
}

/// Per NUMA node 40 GB/s; a rank alone updates 1e9 and casts 2e9 numbers a second.
inline Host host() {
  Host h;
  h.numa_nodes = 2;
  h.cores = 4;
  h.memory = 100_GB;
  h.memory_bandwidth = 40_GBps;
  h.adam_rate = 1e9;
  h.cast_rate = 2e9;
  h.copy_rate = 8_GBps;
  return h;
}

/// 4 GB/s reads, 2 GB/s writes, 2 and 1 when mixed.
inline StoragePath drive() {
  StoragePath p;
  p.name = "nvme";
  p.capacity = 1000_GB;
  p.read = 4_GBps;
  p.write = 2_GBps;
  p.read_mixed = 2_GBps;
  p.write_mixed = 1_GBps;
  return p;
}

/// 20 GB/s between GPUs.
inline Fabric fabric() {
  Fabric f;
  f.per_gpu = 20_GBps;
  return f;
}

inline Machine machine(std::vector<Gpu> gpus = {gpu(), gpu()}, const StoragePath& path = drive(),
                       const Fabric& links = fabric(), const Host& cpu = host()) {
  return Machine("toy", std::move(gpus), cpu, links, {path}, {});
}

/// The fraction that a demand takes of a resource, 0 when it does not use it.
inline double share(const Machine& m, const Demand& d, const std::string& resource) {
  for (const Share& s : d.used()) {
    if (m.resources()[index(s.resource)].name == resource) return s.fraction;
  }
  return 0;
}

}  // namespace tidegate::toy
