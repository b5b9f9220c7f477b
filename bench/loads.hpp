#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/demand.hpp"
#include "sim/plan/plan.hpp"

/// Synthetic loads for comparing simulators of shared resources: the same task graph for the
/// engine, for a reference loop and for SimGrid.
///
///   train  G L S STEPS [JITTER]  offloaded training steps: G GPUs, L layers, S sub-groups per GPU
///   stress K R H N               K chains of flows over R links between H hosts, N flows
///   open   LOAD R H N            N flows at fixed arrival times; the busiest link is used LOAD of
///   the time
namespace tidegate::bench {

struct Host {
  std::string name;
  double speed = 1e9;  ///< work units per second and core
  int cores = 1;
};
struct Route {
  std::uint32_t from = 0, to = 0;    ///< hosts
  std::vector<std::uint32_t> links;  ///< distinct links crossed
};
enum class Kind : std::uint8_t { compute, flow };

struct Load {
  std::vector<Host> hosts;
  std::vector<double> link_rate;  ///< bytes per second
  std::vector<Route> routes;
  // By task.
  std::vector<Kind> kind;
  std::vector<std::uint32_t> where;         ///< host of a compute, route of a flow
  std::vector<double> amount;               ///< work units, or whole bytes
  std::vector<std::uint32_t> stream;        ///< in-order queue; follows from the dependencies
  std::vector<std::uint16_t> stream_width;  ///< by stream
  // Successors, row by row, and the number of predecessors.
  std::vector<std::uint32_t> predecessors, first_successor, successors;

  std::size_t size() const { return kind.size(); }
};

/// A host is one resource of which a task takes one core. Every link is one resource; a flow alone
/// runs at the rate of its slowest link.
struct PricedPlan {
  Plan plan;
  std::vector<Demand> demands;
  std::vector<Resource> resources;
};
enum class Memory : std::uint8_t { ignored, tracked };
/// tracked: every flow allocates a buffer of its size at its start and frees it at its end.
PricedPlan priced_plan(const Load& load, Memory memory);

Load train(int gpus, int layers, int subgroups, int steps, double jitter = 0.2);
/// Closed loop: rounding errors grow exponentially with the number of ends, so that ends of long
/// runs agree between simulators only statistically.
Load stress(int chains, int links, int hosts, int flows);
/// Open loop: rounding errors do not grow.
Load open_arrivals(double load, int links, int hosts, int flows);

/// The load named by "train 4 32 40 10" and so on. Throws InputError on other text.
Load parse_load(const std::vector<std::string>& words);

}  // namespace tidegate::bench
