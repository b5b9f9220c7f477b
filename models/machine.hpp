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

/// The nodes of a training cluster, composed from a profile: GPUs, host, links, storage paths.
///
/// The devices answer what a work costs (demand); the engine divides the resources. Nodes are
/// alike: nodes() of them exist, nodes_here() are simulated, shared file systems divide among all
/// that exist. A profile gives a machine of one node; part() takes several, or fewer GPUs of each.
///
/// Resources, by name. GPUs and NUMA nodes are numbered through all nodes, GPU i serves rank i; the
/// names of the rest begin with "node1." where several nodes are simulated:
///   gpuN.compute, gpuN.hbm, gpuN.h2d, gpuN.d2h, gpuN.fabric   per GPU
///   gpuN.pcie                 both directions together, where they disturb each other
///   NAME.h2d, NAME.d2h        a root port that several GPUs share
///   numaN.cores, numaN.dram   per NUMA node
///   NAME                      a storage path; side 0 reads, side 1 writes
///   network.out, network.in   per node, where several exist
///
/// What a work takes while alone:
///   compute     its GPU, and HBM by its traffic
///   copy        link, root port, HBM of its GPUs, DRAM (twice within the host), at
///               rate · size/(size + half); between GPUs the fabric of both or, between nodes,
///               network.out of one and network.in of the other
///   file        the path at rate · f/(f + half) for f bytes in flight, no faster than one client;
///               DRAM, or link, root port and HBM of the GPU that owns the memory, which the path
///               must be able to reach (gpudirect); otherwise a file and a copy go through the host
///   adam, cast  cores of one rank, and DRAM by the bytes moved
///   collective  fabric and a part of the cores of its GPUs, and the network when it leaves the
///               node
/// Nothing is faster than any resource on its way. Cross-socket traffic is not modelled, nor what
/// the network takes of the PCIe links, nor two sends that meet on one network adapter.
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
  /// One node of the cluster. Builds the resources from the devices. Throws std::logic_error on
  /// counts that do not match. GPUs number 1 to 8.
  Machine(std::string name, std::vector<Gpu> gpus, Host host, Fabric fabric,
          std::vector<StoragePath> paths, std::vector<Provenance> provenance);

  /// `nodes` nodes of the cluster, `gpus_per_node` GPUs of each. Every GPU stands for itself and
  /// the fold-1 GPUs after it, which do the same at the same time, as the ranks of a
  /// tensor-parallel group do: one is simulated for all. It has its part of what its node shares,
  /// 1/fold of network, storage and host memory, and of a NUMA node or root port as many parts as
  /// simulated GPUs over those that they stand for there. Its own compute, memory and links are
  /// whole. So times are those of the whole node, while bytes, capacities and prices count 1/fold
  /// of it. GPUs that nobody stands for are idle. Of a machine of one node that is not folded.
  Machine part(std::int32_t nodes, std::int32_t gpus_per_node, std::int32_t fold) const;
  /// The same with all GPUs of a node at work: fold = gpu_count() / gpus_per_node, without rest.
  /// part(1, gpu_count()) is the machine itself.
  Machine part(std::int32_t nodes, std::int32_t gpus_per_node) const;

  const std::string& name() const { return name_; }
  /// GPUs that are simulated, of all nodes.
  std::int32_t gpu_count() const { return static_cast<std::int32_t>(gpus_.size()); }
  const Gpu& gpu(std::size_t i) const { return gpus_.at(i); }
  /// Of each node: its memory is one node's.
  const Host& host() const { return host_; }
  const Fabric& fabric() const { return fabric_; }
  /// Of all nodes: path p of node n at path_of(n, p).
  std::span<const StoragePath> paths() const { return paths_; }
  std::span<const Provenance> provenance() const { return provenance_; }

  std::int32_t nodes() const { return fabric_.nodes; }  ///< of the cluster
  std::int32_t nodes_here() const { return extent_.nodes; }
  std::int32_t gpus_per_node() const { return extent_.gpus; }  ///< simulated
  std::int32_t fold() const { return extent_.fold; }
  std::int32_t paths_per_node() const {
    return static_cast<std::int32_t>(paths_.size()) / nodes_here();
  }
  std::int32_t node_of_gpu(std::size_t gpu) const;
  std::int32_t node_of(Place place) const;
  std::uint16_t path_of(std::int32_t node, std::int32_t path) const;
  /// NUMA node, counted through all nodes, whose cores and memory serve a rank; the ranks of a node
  /// are spread evenly in order.
  std::uint16_t numa_of_rank(std::uint16_t rank) const;

  std::span<const Resource> resources() const { return resources_; }
  /// By resource: the part of the real device that it is here. 1, but for what folded GPUs share
  /// with those that they stand for (part()).
  std::span<const double> parts() const { return parts_; }
  /// The price of a work. Throws std::logic_error when the work names a device that the machine
  /// does not have.
  Demand demand(const Work& work) const;

 private:
  struct Extent {
    std::int32_t nodes, gpus, fold;  ///< gpus of each node
  };
  Machine(std::string name, const std::vector<Gpu>& node_gpus, Host host, Fabric fabric,
          const std::vector<StoragePath>& node_paths, std::vector<Provenance> provenance,
          Extent extent);

  std::string name_;
  Extent extent_;
  std::int32_t node_size_;  ///< GPUs of a node, simulated or not
  std::vector<Gpu> gpus_;
  Host host_;
  Fabric fabric_;
  std::vector<StoragePath> paths_;
  std::vector<Provenance> provenance_;
  std::vector<Resource> resources_;
  std::vector<double> parts_;

  struct LinkResources {
    ResourceId h2d, d2h;
  };
  struct GpuResources {
    ResourceId compute, memory, fabric;
    LinkResources link;
    std::optional<ResourceId> pcie;  ///< both directions together
  };
  // Where a fold makes the GPUs here share a device with GPUs that are not, `part` of it is theirs.
  struct RootResources {
    LinkResources link;
    double part;
  };
  struct NumaResources {
    ResourceId cores, memory;
    double part;
  };
  struct NetworkResources {
    ResourceId out, in;
  };
  std::vector<GpuResources> gpu_;
  std::vector<RootResources> roots_;
  std::vector<NumaResources> numa_;
  std::vector<ResourceId> path_;
  std::vector<NetworkResources> network_;

  class Transfer;
  enum class Way { h2d, d2h };

  ResourceId add(Resource resource, double part = 1);
  void add_node(std::int32_t node, const std::vector<Gpu>& gpus,
                const std::vector<StoragePath>& paths);
  void add_gpu(const Gpu& gpu);
  void add_path(StoragePath path);
  /// Of a device that serves the GPUs of a node for which `serves` holds.
  template <class Serves>
  double part_of(Serves&& serves) const;
  std::size_t numa_of_gpu(std::int32_t gpu_of_node) const;
  BytesPerSecond network_here() const;
  std::int32_t most_on_a_node(const Collective& collective) const;
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
  Demand copy_between_nodes(const Copy&) const;
  Demand work_on_cores(std::uint16_t rank, Bytes moved, Seconds alone) const;
};

}  // namespace tidegate
