#include "models/machine.hpp"
#include "sim/engine/simulate.hpp"

namespace tidegate {

std::vector<Demand> price(const Plan& plan, const Machine& machine) {
  std::vector<Demand> demands;
  demands.reserve(plan.works.size());
  for (const Work& work : plan.works) demands.push_back(machine.demand(work));
  return demands;
}

Timeline simulate(const Plan& plan, const Machine& machine) {
  return simulate(plan, price(plan, machine), machine.resources());
}

}  // namespace tidegate
