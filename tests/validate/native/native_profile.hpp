#pragma once

#include <string>

#include "calib/rig/readings.hpp"

namespace tidegate::test {

/// A profile as `tidegate calib` writes it, with round numbers, said to be of `host`. A core of 50
/// GFLOP/s, memory of 20 GB/s, copies of 5 GB/s, a drive of 1 GB/s.
inline std::string native_profile(const std::string& host = rig::host_facts().id) {
  return R"(kind: node
name: this
gpus:
  count: 1
  name: one core
  memory: {value: 1 GiB, source: x}
  context: {value: 0 B, source: x}
  peak_16: {value: 50 GFLOP/s, source: "measured: gemm", uncertainty: 10 %}
  peak_32: {value: 50 GFLOP/s, source: "measured: gemm", uncertainty: 10 %}
  memory_bandwidth: {value: 20 GB/s, source: x}
  gemm_efficiency: {points: [[33 MFLOP, 0.5], [4 GFLOP, 1.0]], source: x}
  attention_efficiency: {value: 0.5, source: x}
  memory_efficiency: {value: 0.5, source: x}
  launch: {value: 1 us, source: x}
  h2d: {value: 5 GB/s, source: x}
  d2h: {value: 5 GB/s, source: x}
  copy_half_size: {value: 0 B, source: x}
  pageable_factor: {value: 1, source: x}
host:
  numa_nodes: {value: 1, source: x}
  cores: {value: 2, source: x}
  memory: {value: 4 GiB, source: x}
  memory_bandwidth: {value: 20 GB/s, source: x}
  adam_rate: {value: 5e8, source: x}
  cast_rate: {value: 1e9, source: x}
  copy_rate: {value: 5 GB/s, source: x}
  base_use: {value: 0 B, source: x}
paths:
  nvme:
    capacity: {value: 10 GB, source: x}
    read: {value: 1 GB/s, source: "measured: nvme.read", uncertainty: 20 %}
    write: {value: 800 MB/s, source: x}
    latency: {value: 100 us, source: x}
    block_half_size: {value: 0 B, assumed: x}
calibration:
  tool: tidegate
  created: "2026-11-30"
  command: tidegate calib
  complete: true
  seconds: 1
  seed: 7
  passes: 3
  host: {id: )" +
         host + "}\n";
}

}  // namespace tidegate::test
