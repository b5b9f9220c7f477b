#include "models/machine.hpp"

#include <utility>

#include "models/base/error.hpp"

namespace tidegate {

Machine::Machine(std::string name, std::vector<Gpu> gpus, Host host, Fabric fabric,
                 std::vector<StoragePath> paths, std::vector<Provenance> provenance)
    : name_(std::move(name)),
      gpus_(std::move(gpus)),
      host_(std::move(host)),
      fabric_(fabric),
      paths_(std::move(paths)),
      provenance_(std::move(provenance)) {
  ensure(!gpus_.empty() && gpus_.size() <= 8, "a node has one to eight GPUs");
  ensure(host_.numa_nodes >= 1, "a host has a NUMA node");
  ensure(fabric_.nodes >= 1, "a cluster has a node");
  for (std::size_t i = 0; i < gpus_.size(); ++i) add_gpu(i);
  for (const RootPort& root : host_.roots) {
    roots_.push_back({add({.name = root.name + ".h2d"}), add({.name = root.name + ".d2h"})});
  }
  for (std::int32_t i = 0; i < host_.numa_nodes; ++i) {
    const std::string numa = "numa" + std::to_string(i);
    numa_.push_back({add({.name = numa + ".cores"}), add({.name = numa + ".dram"})});
  }
  for (const StoragePath& path : paths_) add_path(path);
  if (fabric_.nodes > 1) network_ = add({.name = "network"});
}

ResourceId Machine::add(Resource resource) {
  resources_.push_back(std::move(resource));
  return ResourceId(static_cast<std::uint16_t>(resources_.size() - 1));
}

void Machine::add_gpu(std::size_t i) {
  const Gpu& gpu = gpus_[i];
  const std::string name = "gpu" + std::to_string(i);
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
}

void Machine::add_path(const StoragePath& path) {
  ensure(path.read > BytesPerSecond(0) && path.write > BytesPerSecond(0), "a path has both rates");
  ensure(path.read_mixed > BytesPerSecond(0) && path.write_mixed > BytesPerSecond(0),
         "a path has mixed rates");
  Resource resource{.name = path.name,
                    .mixed_cost = {path.read / path.read_mixed, path.write / path.write_mixed}};
  if (path.cache > Bytes(0)) {
    ensure(path.write_sustained > BytesPerSecond(0), "a cache that fills has a rate afterwards");
    resource.burst = path.cache / path.write;
    resource.tired_cost = path.write / path.write_sustained;
    resource.recovery = path.cache_recovery / path.write;
  }
  path_.push_back(add(std::move(resource)));
}

std::uint16_t Machine::numa_of_rank(std::uint16_t rank) const {
  ensure(rank < gpus_.size(), "a rank has a GPU");
  return static_cast<std::uint16_t>(static_cast<std::size_t>(rank) * numa_.size() / gpus_.size());
}

Demand Machine::demand(const Work& work) const {
  return std::visit([this](const auto& w) { return price(w); }, work);
}

}  // namespace tidegate
