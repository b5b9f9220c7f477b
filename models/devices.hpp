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
///   gemm        max(FLOPs / (peak[dtype] · gemm_efficiency(FLOPs)), traffic) + launch
///   attention   max(FLOPs / (peak[dtype] · attention_efficiency(FLOPs)), traffic) + launch
///               of fp32 operands by the curves for fp32 where there are such
///   elementwise traffic + launches · launch
///   traffic   = bytes / (memory_bandwidth · memory_efficiency(bytes of one kernel))
///
/// Curves run over the FLOPs or bytes of one kernel. Every operand passes memory once: caches serve
/// all reuse. Shape effects beyond size (tiles, waves, odd strides) are not modelled.
struct Gpu {
  std::string name;
  Bytes memory;            ///< what cudaMemGetInfo calls total, less nothing
  Bytes context;           ///< CUDA context and library handles, outside the framework's allocator
  Bytes blas_workspace;    ///< that a cuBLAS handle takes from the framework's allocator
  FlopsPerSecond peak_16;  ///< dense matrix peak, bf16/fp16
  FlopsPerSecond peak_32;  ///< dense matrix peak, fp32 inputs (TF32 where the GPU has it)
  FlopsPerSecond peak_8;   ///< dense matrix peak, fp8; zero when the GPU has none
  BytesPerSecond memory_bandwidth;
  Curve gemm_efficiency;
  Curve attention_efficiency;
  Curve gemm_efficiency_32, attention_efficiency_32;  ///< of fp32; empty: those of the others
  Curve memory_efficiency;
  Seconds launch;           ///< gap between dependent kernels of one stream
  BytesPerSecond h2d, d2h;  ///< pinned, large, one direction alone
  BytesPerSecond duplex;    ///< both directions together; zero when they do not disturb each other
  Bytes copy_half_size;     ///< size at which a copy reaches half its rate: rate·size/(size+half)
  double pageable_factor = 0.3;  ///< rate of pageable copies over pinned ones
  std::int32_t root = -1;        ///< shared root port or switch, index into Host::roots; -1: none
  /// Part of the GPU that a running collective occupies; a kernel beside it has the rest.
  double collective_compute_fraction = 0;

  /// fp8 on a GPU without it runs at the 16-bit peak.
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
///   adam: parameters / adam_rate while one rank of the NUMA node updates. It reads the master
///         weight and two moments (12 B) and the gradient (4 or 2 B) and writes the three back
///         (12 B): 24 B plus the gradient per parameter, a fraction of memory_bandwidth.
///   cast: elements / cast_rate; reads one type, writes the other.
struct Host {
  std::int32_t numa_nodes = 1;
  std::int32_t cores = 1;           ///< physical, whole node
  Bytes memory;                     ///< whole node
  BytesPerSecond memory_bandwidth;  ///< sustained, one NUMA node
  double adam_rate = 1e9;           ///< parameters per second, one rank on its cores
  double cast_rate = 4e9;           ///< elements per second, one rank on its cores
  double ranks_per_numa = 1;        ///< ranks that exhaust the cores of a NUMA node, 1 or more
  BytesPerSecond copy_rate;         ///< one memcpy stream
  Bytes base_use;     ///< operating system and whatever else is not counted by itself, whole node
  Bytes process_use;  ///< one rank's process: imports, CUDA's host side; 0: within base_use
  Seconds launch;     ///< CPU time of the framework's thread for each kernel launch
  std::vector<RootPort> roots;
};

/// GPU-to-GPU links of a node and the network between nodes.
///
/// Ring bus bandwidth for n ranks, g of them on each node (NCCL's definition): B = per_gpu ·
/// efficiency(bytes) when all are on one node; N = min(per_node, g · per_nic) when no node has two;
/// else the smaller. One latency, and network_latency when they span nodes. efficiency is read at
/// the full buffer's bytes, as nccl-tests count them.
///
///   all-gather, reduce-scatter   bytes · (n-1)/n / B
///   all-reduce                   twice that
///   broadcast                    bytes / B
///   all-to-all                   bytes · max((n-1)/n / per_gpu, g · (n-g)/n / N); `bytes` is what
///                                one rank holds
///
/// A copy between GPUs is a send with its receive, kernels of the same library: of one node,
/// latency + bytes / per_gpu; of two nodes, network_latency + bytes / per_nic, through the network
/// of both and the fabric of neither. No ramp over the size beside the latency, which is one.
struct Fabric {
  BytesPerSecond per_gpu;       ///< bus bandwidth that one large collective reaches, each GPU
  Curve efficiency = Curve(1);  ///< part of per_gpu that a collective of these bytes reaches
  BytesPerSecond links;  ///< what the links of a GPU carry in one direction; collectives that run
                         ///< at the same time share it. At least per_gpu
  Seconds latency;       ///< of one collective
  std::int32_t nodes = 1;
  BytesPerSecond per_node;  ///< network, each node, one direction; unused for one node
  BytesPerSecond per_nic;  ///< the adapter that serves one GPU; zero: per_node over the node's GPUs
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
  BytesPerSecond client_read, client_write;  ///< most that one process reaches; zero: no own limit
  Seconds latency;                           ///< of one request
  Bytes block_half_size;       ///< bytes in flight (block·depth·threads) that reach half the rate
  bool is_shared = false;      ///< a file system whose rates divide among the nodes
  bool gpudirect = false;      ///< reads and writes GPU memory itself (GPUDirect Storage)
  double endurance_bytes = 0;  ///< rated bytes written over the warranty, 0 when unknown
  double warranty_years = 5;   ///< of the rating
  double write_amplification = 1;        ///< bytes written to flash per byte of this traffic
  double rated_write_amplification = 1;  ///< of the workload that the rating is for
  /// Burst: writes run at `write` for this many bytes after idling, then at write_sustained; time
  /// without writes empties the cache at cache_recovery. cache = 0: no such limit.
  Bytes cache;
  BytesPerSecond write_sustained, cache_recovery;

  /// `factor` such paths striped, or a part of one: rates, capacity, endurance, cache and bytes in
  /// flight times `factor`; the limit of a client and the latency stay.
  StoragePath times(double factor) const;
};

}  // namespace tidegate
