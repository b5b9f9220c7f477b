#include "sim/engine/simulate.hpp"

#include "sim/engine/run.hpp"

namespace tidegate {

Timeline simulate(const Plan& plan, std::span<const Demand> demands,
                  std::span<const Resource> resources) {
  Run run(plan, demands, resources);
  run.to_end();
  return run.take_timeline();
}

}  // namespace tidegate
