#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "models/demand.hpp"
#include "models/devices.hpp"
#include "models/work.hpp"

/// One node of a training cluster, composed from a profile: GPUs, host, links, storage paths.
///
/// The node's devices answer what a work costs (demand); the engine divides the resources. Nodes are
/// symmetric: `nodes` of them exist, one is simulated, shared file systems and the network divide
/// among them.
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

  struct GpuResources {
    ResourceId compute, memory, h2d, d2h, fabric;
    std::int32_t root = -1;  ///< index into roots_, -1 when the GPU has a link of its own to the CPU
  };
  struct RootResources {
    ResourceId h2d, d2h;
  };
  struct NumaResources {
    ResourceId cores, memory;
  };
  std::vector<GpuResources> gpu_;
  std::vector<RootResources> roots_;
  std::vector<NumaResources> numa_;
  std::vector<ResourceId> path_;
  ResourceId network_{};

  ResourceId add(std::string name, double mixed_read = 1, double mixed_write = 1);
  Demand price(const Delay&) const;
  Demand price(const Compute&) const;
  Demand price(const Copy&) const;
  Demand price(const FileIo&) const;
  Demand price(const AdamStep&) const;
  Demand price(const Cast&) const;
  Demand price(const Collective&) const;
};

}  // namespace tidegate
