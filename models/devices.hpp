#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/curve.hpp"
#include "models/work.hpp"

/// Cost models of single devices, each alone. Sharing is the engine's business.
/// Every field is filled from a profile (profile.hpp), where its source stands.
namespace tidegate {

/// Roofline over calibrated efficiencies.
///
///   gemm        max(2bmnk / (peak[dtype] · gemm_efficiency(2bmnk)), bytes / (memory_bandwidth · e)) + launch
///   attention   FLOPs / (peak · attention_efficiency(FLOPs)) + launch
///   elementwise bytes / (memory_bandwidth · memory_efficiency(bytes / launches)) + launches · launch
///
/// Curves run over the FLOPs or bytes of one kernel.
struct Gpu {
  std::string name;
  Bytes memory;             ///< what cudaMemGetInfo calls total, less nothing
  Bytes context;            ///< CUDA context and library handles, outside the framework's allocator
  FlopsPerSecond peak_16;   ///< dense matrix peak, bf16/fp16
  FlopsPerSecond peak_32;   ///< dense matrix peak, fp32 inputs (TF32 where the GPU has it)
  FlopsPerSecond peak_8;    ///< dense matrix peak, fp8; zero when the GPU has none
  BytesPerSecond memory_bandwidth;
  Curve gemm_efficiency;
  Curve attention_efficiency;
  Curve memory_efficiency;
  Seconds launch;           ///< gap between dependent kernels of one stream
  BytesPerSecond h2d, d2h;  ///< pinned, large, one direction alone
  BytesPerSecond duplex;    ///< both directions together
  Bytes copy_half_size;     ///< size at which a copy reaches half its rate: rate·size/(size+half)
  double pageable_factor = 0.3;  ///< rate of pageable copies over pinned ones
  std::int32_t root = -1;        ///< shared root port or switch, -1 for none

  FlopsPerSecond peak(DType dtype) const;
  Seconds alone(const Kernel& kernel) const;
  /// Bytes that the kernel moves through GPU memory.
  Bytes memory_traffic(const Kernel& kernel) const;
};

/// A port of the host through which several GPUs reach memory.
struct RootPort {
  std::string name;
  BytesPerSecond h2d, d2h;
};

/// Host memory and cores, per NUMA node.
///
///   adam: parameters / adam_rate while one rank of the NUMA node updates; the bytes it moves
///         (28 + gradient bytes per parameter) take their fraction of memory_bandwidth.
struct Host {
  std::int32_t numa_nodes = 1;
  std::int32_t cores = 1;           ///< physical, whole node
  Bytes memory;                     ///< whole node
  BytesPerSecond memory_bandwidth;  ///< sustained, one NUMA node
  double adam_rate = 1e9;           ///< parameters per second, one rank on its cores
  double cast_rate = 4e9;           ///< elements per second, one rank on its cores
  double ranks_per_numa = 1;        ///< ranks whose cores exhaust a NUMA node
  BytesPerSecond copy_rate;         ///< one memcpy stream
  Bytes base_use;                   ///< operating system, runtimes and processes, whole node
  std::vector<RootPort> roots;
};

/// GPU-to-GPU links of a node and the network between nodes.
struct Fabric {
  BytesPerSecond per_gpu;    ///< bus bandwidth of large collectives, each GPU, one direction
  Seconds latency;           ///< of one collective
  std::int32_t nodes = 1;
  BytesPerSecond per_node;   ///< network, each node, one direction; unused for one node
  Seconds network_latency;
};

/// A drive, several striped drives, or a file system: a place for files with its rates.
///
/// Reads and writes share one budget. Pure traffic runs at read/write; while both directions are
/// busy, read_mixed and write_mixed hold on the shared budget (r/R' + w/W' <= 1).
struct StoragePath {
  std::string name;
  Bytes capacity;
  BytesPerSecond read, write;
  BytesPerSecond read_mixed, write_mixed;
  BytesPerSecond client_read, client_write;  ///< most that one process of the node reaches
  Seconds latency;                           ///< of one request
  Bytes block_half_size;      ///< block·depth·threads at which half the rate is reached
  bool is_shared = false;     ///< a file system whose rates divide among the nodes
  double endurance_bytes = 0; ///< rated bytes written over the life, 0 when unknown
  double write_amplification = 1;
  /// Burst: writes run at `write` for this many bytes after idling, then at write_sustained.
  Bytes cache;
  BytesPerSecond write_sustained;
};

}  // namespace tidegate
