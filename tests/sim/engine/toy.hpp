#pragma once

#include <initializer_list>
#include <vector>

#include "models/demand.hpp"
#include "sim/plan/plan.hpp"

/// Small plans with prices of their own, for tests whose sums are mental arithmetic.
namespace tidegate::toy {

struct Use {
  ResourceId resource{};
  double fraction = 1;
  std::uint8_t side = 0;
};

/// A flow that takes `alone` seconds without competition. Its amount is `alone` units, so that its
/// cap is 1 unit/s and fair sharing is sharing of speed, unless `amount` says otherwise.
inline Demand flow(double alone, std::initializer_list<Use> uses, double amount = 0,
                   double weight = 1, double latency = 0) {
  Demand demand;
  demand.latency = Seconds(latency);
  demand.alone = Seconds(alone);
  demand.amount = amount > 0 ? amount : alone;
  demand.weight = weight;
  for (const Use& use : uses) demand.use(use.resource, use.fraction, use.side);
  return demand;
}
inline Demand wait(double seconds) { return {.alone = Seconds(seconds)}; }

class Toy {
 public:
  PlanBuilder builder;
  std::vector<Demand> demands;
  std::vector<Resource> resources;

  ResourceId resource(Resource r = {}) {
    resources.push_back(std::move(r));
    return static_cast<ResourceId>(resources.size() - 1);
  }
  LaneId lane(std::uint16_t width = 1, std::uint16_t rank = 0) {
    return builder.lane("lane " + std::to_string(lanes_++), rank, width);
  }
  TaskId add(LaneId lane, const Demand& demand, std::initializer_list<TaskId> after = {},
             std::initializer_list<Effect> effects = {}, std::uint16_t rank = 0, When when = {}) {
    return add(lane, demand, std::vector(after), std::vector(effects), rank, when);
  }
  TaskId add(LaneId lane, const Demand& demand, const std::vector<TaskId>& after,
             const std::vector<Effect>& effects, std::uint16_t rank = 0, When when = {}) {
    demands.push_back(demand);
    // The work is only the demand's number: the engine never looks inside.
    const WorkId work = builder.work(Delay{Seconds(static_cast<double>(demands.size()))});
    return builder.add({"task", lane, rank, tasks_++, when}, work, after, effects);
  }
  Plan finish() { return builder.finish(1, 1); }

 private:
  std::int32_t tasks_ = 0, lanes_ = 0;
};

}  // namespace tidegate::toy
