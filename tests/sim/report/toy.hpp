#pragma once

#include <vector>

#include "models/demand.hpp"
#include "sim/plan/plan.hpp"
#include "sim/report/report.hpp"
#include "sim/timeline/timeline.hpp"

/// A plan with the times at which its tasks ran, set by hand.
struct Run {
  tidegate::Plan plan;
  tidegate::Timeline timeline;
  std::vector<tidegate::Demand> demands;
  std::vector<tidegate::Resource> resources;
  tidegate::RunFacts facts;

  tidegate::Report report() const {
    return tidegate::summarize(plan, timeline, demands, resources, facts);
  }
};

/// Collects tasks with their times in seconds. Works are told apart by their demands.
class RunBuilder {
 public:
  tidegate::PlanBuilder plan;

  tidegate::TaskId add(const tidegate::PlanBuilder::NewTask& task, const tidegate::Work& work,
                       const tidegate::Demand& demand, double start, double end,
                       const std::vector<tidegate::TaskId>& after = {},
                       const std::vector<tidegate::Effect>& effects = {});
  Run finish(int iterations, int ranks, std::vector<tidegate::Resource> resources);

 private:
  tidegate::Timeline timeline_;
  std::vector<tidegate::Demand> demands_;
};

/// `alone` seconds at the full speed of one resource, after a latency.
tidegate::Demand demand(int resource, double alone, double latency = 0);

/// Two iterations on two ranks that share one drive, in seconds. Resources: gpu0, gpu1, drive.
///
///              latency  alone   iteration 0   iteration 1
///   forward    0.5      1.5     0 - 2         9 - 11
///   backward   0        3       2 - 5         11 - 14
///   write 1 GB 0        2       5 - 9         15 - 19     both ranks at half speed; 1 s late at 15
///
/// Each task follows the one above it, forward 1 follows write 0. Each ends its phase (the write
/// that of update). In rank 0's pool "gpu0": weights 6 GB from start to end; activations 3 GB from
/// forward to backward; gradients 2 GB from backward to write. The pool "gpu1" is alike.
Run two_ranks(double capacity_gb);
