#pragma once

#include <vector>

#include "models/demand.hpp"
#include "sim/graph/layer_graph.hpp"
#include "sim/plan/plan.hpp"
#include "sim/policy/layout.hpp"
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

/// A plan in virtual time, with all that it was made of.
struct SimulatedPlan {
  Plan plan;
  std::vector<Demand> demands;      ///< by work of the plan
  std::vector<Resource> resources;  ///< of the nodes that the plan contains
  Timeline timeline;
};

/// Who does what on the machine of a scenario.
Layout layout_of(const Scenario& scenario);
/// The part of `machine` that the scenario's plan is simulated on. `machine` is the scenario's, or
/// one like it with other rates.
Machine machine_here(const Scenario& scenario, const Machine& machine);
/// `graph` and `machine` must outlive what is made of it.
Setting setting_of(const Scenario& scenario, const LayerGraph& graph, const Machine& machine,
                   const Layout& layout);

/// A policy that adapts learns first. The scenario's policy keeps notes while it plans, so it is
/// not const.
SimulatedPlan simulate_scenario(const Setting& setting, Scenario& scenario);

/// Runs the whole pipeline. The scenario's policy keeps notes while it plans, so it is not const.
Prediction predict(Scenario& scenario);

/// The revision of this build, as git describes it.
const char* revision();

}  // namespace tidegate
