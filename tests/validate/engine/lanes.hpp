#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "sim/plan/plan.hpp"

namespace tidegate {

/// A plan by hand in which every task has a lane of its own.
struct Lanes {
  PlanBuilder builder;
  std::uint16_t count = 0;

  TaskId add(const char* name, const Work& work, std::initializer_list<TaskId> after = {},
             std::initializer_list<Effect> effects = {}) {
    const LaneId lane = builder.lane(name, 0);
    return builder.add({name, lane, 0, count++}, work, std::vector(after), std::vector(effects));
  }
};

}  // namespace tidegate
