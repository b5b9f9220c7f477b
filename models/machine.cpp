#include "models/machine.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "models/base/error.hpp"

namespace tidegate {

Machine::Machine(std::string name, std::vector<Gpu> gpus, Host host, Fabric fabric,
                 std::vector<StoragePath> paths, std::vector<Provenance> provenance)
    : Machine(std::move(name), gpus, std::move(host), fabric, paths, std::move(provenance),
              {1, static_cast<std::int32_t>(gpus.size()), 1}) {}

Machine::Machine(std::string name, const std::vector<Gpu>& node_gpus, Host host, Fabric fabric,
                 const std::vector<StoragePath>& node_paths, std::vector<Provenance> provenance,
                 Extent extent)
    : name_(std::move(name)),
      extent_(extent),
      node_size_(static_cast<std::int32_t>(node_gpus.size())),
      host_(std::move(host)),
      fabric_(fabric),
      provenance_(std::move(provenance)) {
  ensure(node_size_ >= 1 && node_size_ <= 8, "a node has one to eight GPUs");
  ensure(host_.numa_nodes >= 1, "a host has a NUMA node");
  ensure(fabric_.nodes >= 1, "a cluster has a node");
  if (fabric_.per_nic == BytesPerSecond(0)) fabric_.per_nic = fabric_.per_node / node_size_;
  host_.memory = Bytes(std::floor(host_.memory.value() / extent_.fold));
  host_.base_use = Bytes(std::floor(host_.base_use.value() / extent_.fold));
  for (std::int32_t node = 0; node < extent_.nodes; ++node) add_node(node, node_gpus, node_paths);
}

Machine Machine::part(std::int32_t nodes, std::int32_t gpus_per_node, std::int32_t fold) const {
  ensure(nodes_here() == 1 && extent_.fold == 1 && gpu_count() == node_size_,
         "a part is taken of a whole node");
  ensure(nodes >= 1 && nodes <= this->nodes(), "the nodes of a part exist");
  ensure(gpus_per_node >= 1 && fold >= 1 && gpus_per_node * fold <= node_size_,
         "the GPUs of a part, and those that they stand for, exist");
  return Machine(name_, gpus_, host_, fabric_, paths_, provenance_, {nodes, gpus_per_node, fold});
}

Machine Machine::part(std::int32_t nodes, std::int32_t gpus_per_node) const {
  ensure(gpus_per_node >= 1 && node_size_ % gpus_per_node == 0,
         "each simulated GPU stands for as many GPUs");
  return part(nodes, gpus_per_node, node_size_ / gpus_per_node);
}

ResourceId Machine::add(Resource resource, double part) {
  ensure(resources_.size() < std::numeric_limits<std::uint16_t>::max(), "resources are numbered");
  resources_.push_back(std::move(resource));
  parts_.push_back(part);
  return ResourceId(static_cast<std::uint16_t>(resources_.size() - 1));
}

template <class Serves>
double Machine::part_of(Serves&& serves) const {
  std::int32_t here = 0, all = 0;
  for (std::int32_t gpu = 0; gpu < extent_.gpus * extent_.fold; ++gpu) {
    if (!serves(gpu)) continue;
    ++all;
    if (gpu % extent_.fold == 0) ++here;
  }
  return here > 0 ? static_cast<double>(here) / all : 1.0 / extent_.fold;
}

void Machine::add_node(std::int32_t node, const std::vector<Gpu>& gpus,
                       const std::vector<StoragePath>& paths) {
  const std::string prefix = extent_.nodes > 1 ? "node" + std::to_string(node) + "." : "";
  const auto gpu_at = [&](std::int32_t i) -> const Gpu& {
    return gpus[static_cast<std::size_t>(i)];
  };
  for (std::int32_t i = 0; i < extent_.gpus; ++i) add_gpu(gpu_at(i * extent_.fold));
  for (std::size_t r = 0; r < host_.roots.size(); ++r) {
    const std::string name = prefix + host_.roots[r].name;
    const auto is_behind = [&](std::int32_t i) {
      return gpu_at(i).root == static_cast<std::int32_t>(r);
    };
    const double part = part_of(is_behind);
    roots_.push_back(
        {{add({.name = name + ".h2d"}, part), add({.name = name + ".d2h"}, part)}, part});
  }
  for (std::size_t n = 0; n < static_cast<std::size_t>(host_.numa_nodes); ++n) {
    const std::string name = "numa" + std::to_string(numa_.size());
    const auto is_of = [&](std::int32_t i) { return numa_of_gpu(i) == n; };
    const double part = part_of(is_of);
    numa_.push_back(
        {add({.name = name + ".cores"}, part), add({.name = name + ".dram"}, part), part});
  }
  for (StoragePath path : paths) {
    path.name = prefix + path.name;
    add_path(std::move(path));
  }
  if (fabric_.nodes > 1) {
    const double part = 1.0 / extent_.fold;
    network_.push_back(
        {add({.name = prefix + "network.out"}, part), add({.name = prefix + "network.in"}, part)});
  }
}

void Machine::add_gpu(const Gpu& gpu) {
  const std::string name = "gpu" + std::to_string(gpus_.size());
  ensure(gpu.root < static_cast<std::int32_t>(host_.roots.size()), "the root port of a GPU exists");
  GpuResources ids;
  ids.compute = add({.name = name + ".compute"});
  ids.memory = add({.name = name + ".hbm"});
  ids.link = {add({.name = name + ".h2d"}), add({.name = name + ".d2h"})};
  ids.fabric = add({.name = name + ".fabric"});
  if (gpu.duplex > BytesPerSecond(0) && gpu.duplex < gpu.h2d + gpu.d2h) {
    ids.pcie = add({.name = name + ".pcie"});
  }
  gpu_.push_back(ids);
  gpus_.push_back(gpu);
}

void Machine::add_path(StoragePath path) {
  ensure(path.read > BytesPerSecond(0) && path.write > BytesPerSecond(0), "a path has both rates");
  ensure(path.read_mixed > BytesPerSecond(0) && path.write_mixed > BytesPerSecond(0),
         "a path has mixed rates");
  if (extent_.fold > 1) {
    path = path.times(1.0 / extent_.fold);
    path.capacity = Bytes(std::floor(path.capacity.value()));
  }
  Resource resource{.name = path.name,
                    .mixed_cost = {path.read / path.read_mixed, path.write / path.write_mixed}};
  if (path.cache > Bytes(0)) {
    ensure(path.write_sustained > BytesPerSecond(0), "a cache that fills has a rate afterwards");
    resource.burst = path.cache / path.write;
    resource.tired_cost = path.write / path.write_sustained;
    resource.recovery = path.cache_recovery / path.write;
  }
  path_.push_back(add(std::move(resource), 1.0 / extent_.fold));
  paths_.push_back(std::move(path));
}

std::int32_t Machine::node_of_gpu(std::size_t gpu) const {
  ensure(gpu < gpus_.size(), "a GPU of the machine");
  return static_cast<std::int32_t>(gpu) / extent_.gpus;
}

std::int32_t Machine::node_of(Place place) const {
  switch (place.tier) {
    case Tier::gpu:
      return node_of_gpu(place.index);
    case Tier::host:
      ensure(place.index < numa_.size(), "a place names a NUMA node of the machine");
      return place.index / host_.numa_nodes;
    case Tier::storage:
      ensure(place.index < paths_.size(), "a place names a storage path of the machine");
      return place.index / paths_per_node();
  }
  ensure(false, "every tier is of a node");
  return 0;
}

std::uint16_t Machine::path_of(std::int32_t node, std::int32_t path) const {
  ensure(node >= 0 && node < nodes_here() && path >= 0 && path < paths_per_node(),
         "a path of a node of the machine");
  return static_cast<std::uint16_t>(node * paths_per_node() + path);
}

std::size_t Machine::numa_of_gpu(std::int32_t gpu_of_node) const {
  return static_cast<std::size_t>(gpu_of_node * host_.numa_nodes / node_size_);
}

std::uint16_t Machine::numa_of_rank(std::uint16_t rank) const {
  ensure(rank < gpus_.size(), "a rank has a GPU");
  const std::int32_t before = node_of_gpu(rank) * host_.numa_nodes;
  const std::size_t within = numa_of_gpu(rank % extent_.gpus * extent_.fold);
  return static_cast<std::uint16_t>(static_cast<std::size_t>(before) + within);
}

Demand Machine::demand(const Work& work) const {
  return std::visit([this](const auto& w) { return price(w); }, work);
}

}  // namespace tidegate
