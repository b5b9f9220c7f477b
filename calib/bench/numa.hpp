#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "calib/measure/bench.hpp"
#include "calib/rig/host_buffer.hpp"
#include "calib/rig/numa.hpp"

/// Memory of each NUMA node from the CPUs of each; a node may have memory alone.
///
///   numa.read     {from, to}  bytes per second that all CPUs of node `from` together read from
///                             memory of node `to`, each a part of its own, and held on its CPU
///   numa.latency  {from, to}  seconds of a load that depends on the one before (chain.hpp), by one
///                             CPU of `from` in memory of `to`
namespace tidegate::calib {

struct NumaPlaces {
  std::vector<rig::NumaNode> nodes;
  std::function<rig::HostBuffer(std::int32_t node, std::size_t bytes, rig::HostBuffer::Pages)>
      memory;
  std::function<std::int32_t(const void*)> node_of;  ///< -1: not told
};
/// This machine's.
NumaPlaces numa_here();

std::unique_ptr<Bench> make_numa(const Setup& setup, NumaPlaces places);

}  // namespace tidegate::calib
