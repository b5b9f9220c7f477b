#include "sim/run/steady_time.hpp"

#include "sim/engine/simulate.hpp"
#include "sim/report/period.hpp"

namespace tidegate {

Seconds steady_time(const Plan& plan, std::span<const Demand> demands,
                    std::span<const Resource> resources) {
  const Timeline timeline = simulate(plan, demands, resources);
  const Steady steady = steady_period(iterations_of(plan, timeline));
  return steady.time() / static_cast<double>(steady.iterations());
}

}  // namespace tidegate
