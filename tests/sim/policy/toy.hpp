#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/machine.hpp"
#include "sim/graph/layer_graph.hpp"
#include "sim/plan/plan.hpp"
#include "sim/policy/layout.hpp"
#include "sim/policy/step.hpp"
#include "sim/timeline/timeline.hpp"

/// Networks whose kernels take whole seconds, on the machine of tests/models/toy.hpp: plans whose
/// timelines are mental arithmetic.
namespace tidegate::toy {

/// A kernel of `seconds` on the toy GPU. It takes 2 % of the memory's bandwidth, so copies beside
/// it do not slow it down.
Kernel lasting(double seconds);

struct Op {
  std::string name;
  double forward = 1, backward = 1;  ///< seconds
  std::vector<SavedTensor> saved;
};
/// 16-bit elements; equal identities are one storage.
SavedTensor saved(Bytes bytes, std::int32_t identity = 1);

/// A block without parameters.
Layer block(std::string name, const std::vector<Op>& ops);
Layer block(const Op& op);
LayerGraph graph(std::vector<Layer> layers);

/// `gpus` toy GPUs on one of `nodes` nodes, one NUMA node a GPU. Its drive reads and writes GPU
/// memory.
Machine node(int gpus, std::int32_t nodes = 1, const std::function<void(Gpu&, int)>& change = {});

struct Run {
  Machine machine;
  Plan plan;
  std::vector<Demand> demands;
  Timeline timeline;

  double start(TaskId t) const { return to_seconds(timeline.start[index(t)]).value(); }
  double end(TaskId t) const { return to_seconds(timeline.end[index(t)]).value(); }
  double makespan() const { return to_seconds(timeline.makespan).value(); }
  const std::string& name(TaskId t) const { return plan.names[index(plan.task(t).name)]; }
  const std::string& lane(TaskId t) const { return plan.lanes[index(plan.task(t).lane)].name; }
  bool is_run(TaskId t) const { return !is_skipped(plan, t, timeline); }
  /// Tasks of a name, skipped ones too, in the order of the plan.
  std::vector<TaskId> all(const std::string& name, std::optional<int> rank = {},
                          std::optional<int> iteration = {}) const;
  /// Those of them that ran.
  std::vector<TaskId> ran(const std::string& name, std::optional<int> rank = {},
                          std::optional<int> iteration = {}) const;
  /// Bytes of the files that ran, and of the copies.
  double file_bytes(Direction direction, std::optional<int> iteration = {}) const;
  double copied_bytes(Tier from, Tier to, std::optional<int> iteration = {}) const;
  /// Peak of a pool; of the buffers of one owner.
  double peak(const std::string& pool) const;
  double peak(const std::string& pool, const std::string& owner) const;
};

struct Question {
  LayerGraph graph;
  Machine machine = node(1);
  std::string policy = "{}";
  Parallel parallel = {};
  std::int64_t accumulation = 1;
  std::int32_t iterations = 1;
  bool is_folded = false;
};
/// Plans and runs it, after a profiling run where the policy asks for one, and holds plan and
/// timeline against the laws.
Run run(const Question& question);

}  // namespace tidegate::toy
