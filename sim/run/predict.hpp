#pragma once

#include <vector>

#include "models/demand.hpp"
#include "sim/graph/layer_graph.hpp"
#include "sim/plan/plan.hpp"
#include "sim/report/report.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/timeline/timeline.hpp"

namespace tidegate {

/// Every stage's value of one prediction, scenario → graph → plan → timeline → report.
struct Prediction {
  LayerGraph graph;
  Plan plan;
  std::vector<Demand> demands;      ///< by work of the plan
  std::vector<Resource> resources;  ///< of the nodes that the plan contains
  Timeline timeline;
  Report report;
};

/// Runs the whole pipeline. The scenario's policy keeps notes while it plans, so it is not const.
Prediction predict(Scenario& scenario);

/// The revision of this build, as git describes it.
const char* revision();

}  // namespace tidegate
