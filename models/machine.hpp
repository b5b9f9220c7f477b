#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/demand.hpp"
#include "models/devices.hpp"
#include "models/work.hpp"

/// One node of a training cluster, composed from a profile: GPUs, host, links, storage paths.
///
/// The node's devices answer what a work costs (demand); the engine divides the resources. Nodes
/// are symmetric: `nodes` of them exist, one is simulated, shared file systems divide among them.
///
/// Resources, by name:
///   gpuN.compute, gpuN.hbm, gpuN.h2d, gpuN.d2h, gpuN.fabric   per GPU
///   gpuN.pcie                 both directions together, where they disturb each other
///   NAME.h2d, NAME.d2h        a root port that several GPUs share
///   numaN.cores, numaN.dram   per NUMA node
///   NAME                      a storage path; side 0 reads, side 1 writes
///   network                   where there are several nodes
///
/// What a work takes while alone:
///   compute     its GPU, and HBM by its traffic
///   copy        link, root port, HBM of its GPUs, DRAM (twice within the host), at
///               rate · size/(size + half)
///   file        the path at rate · f/(f + half) for f bytes in flight, no faster than one client;
///               DRAM, or the link and HBM of the GPU that owns the memory
///   adam, cast  cores of one rank, and DRAM by the bytes moved
///   collective  fabric and a part of the cores of its GPUs, and the network when it leaves the
///   node
/// Nothing is faster than any resource on its way. Cross-socket traffic is not modelled.
namespace tidegate {

/// A value of the profile with where it comes from. `uncertainty` is one standard deviation,
/// relative; 0 when unknown.
struct Provenance {
  std::string key;
  std::string value;
  std::string source;
  double uncertainty = 0;
  bool assumed = false;
};

class Machine {
 public:
  /// Builds the resources from the devices. Throws std::logic_error on counts that do not match.
  /// GPUs number 1 to 8.
  Machine(std::string name, std::vector<Gpu> gpus, Host host, Fabric fabric,
          std::vector<StoragePath> paths, std::vector<Provenance> provenance);

  const std::string& name() const { return name_; }
  std::int32_t gpu_count() const { return static_cast<std::int32_t>(gpus_.size()); }
  const Gpu& gpu(std::size_t i) const { return gpus_.at(i); }
  const Host& host() const { return host_; }
  const Fabric& fabric() const { return fabric_; }
  std::span<const StoragePath> paths() const { return paths_; }
  std::span<const Provenance> provenance() const { return provenance_; }
  std::int32_t nodes() const { return fabric_.nodes; }

  std::span<const Resource> resources() const { return resources_; }
  /// The price of a work on this node. Throws std::logic_error when the work names a device that
  /// the node does not have.
  Demand demand(const Work& work) const;
  /// NUMA node whose cores and memory serve a rank; ranks are spread evenly in order.
  std::uint16_t numa_of_rank(std::uint16_t rank) const;

 private:
  std::string name_;
  std::vector<Gpu> gpus_;
  Host host_;
  Fabric fabric_;
  std::vector<StoragePath> paths_;
  std::vector<Provenance> provenance_;
  std::vector<Resource> resources_;

  struct LinkResources {
    ResourceId h2d, d2h;
  };
  struct GpuResources {
    ResourceId compute, memory, fabric;
    LinkResources link;
    std::optional<ResourceId> pcie;  ///< both directions together
  };
  struct NumaResources {
    ResourceId cores, memory;
  };
  std::vector<GpuResources> gpu_;
  std::vector<LinkResources> roots_;
  std::vector<NumaResources> numa_;
  std::vector<ResourceId> path_;
  ResourceId network_{};

  class Transfer;
  enum class Way { h2d, d2h };

  ResourceId add(Resource resource);
  void add_gpu(std::size_t i);
  void add_path(const StoragePath& path);
  void through_link(Transfer& transfer, std::size_t gpu, Way way) const;
  void through_dram(Transfer& transfer, std::size_t numa, double times = 1) const;

  Demand price(const Delay&) const;
  Demand price(const Compute&) const;
  Demand price(const Copy&) const;
  Demand price(const FileIo&) const;
  Demand price(const AdamStep&) const;
  Demand price(const Cast&) const;
  Demand price(const Collective&) const;
  Demand copy_between_gpus(const Copy&) const;
  Demand work_on_cores(std::uint16_t rank, Bytes moved, Seconds alone) const;
};

}  // namespace tidegate
