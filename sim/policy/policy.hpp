#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/yaml.hpp"
#include "models/machine.hpp"
#include "sim/graph/layer_graph.hpp"
#include "sim/plan/plan.hpp"
#include "sim/policy/least.hpp"
#include "sim/policy/schedule.hpp"
#include "sim/policy/step.hpp"
#include "sim/timeline/timeline.hpp"

/// A policy decides where bytes live and when they move. Three independent choices make one:
///
///   activations   what is kept from forward to backward            (keep, recompute, …)
///   parameters    where the 16-bit parameter shards live           (resident, host, nvme)
///   optimizer     where gradients go, where and when Adam runs     (resident, zero_offload, …)
///
/// Each choice is one file and one line of the table in policies.cpp. A policy adds tasks to a
/// Step; it sees the layer graph and the machine, never a clock.
namespace tidegate {

class ActivationPolicy {
 public:
  virtual ~ActivationPolicy() = default;
  /// The visits of one backward over layers [first, last), in order; forward visits every layer
  /// once, in order.
  virtual std::vector<Visit> backward_order(const LayerGraph& graph, std::size_t first,
                                            std::size_t last) const = 0;
  /// Lanes and buffers that live as long as the run. Begins a new plan.
  virtual void prepare(Step&) {}
  virtual void begin(Step&, std::int32_t /*iteration*/) {}
  /// Adds a visit on every rank of its stage: its kernels, and what it allocates and frees.
  virtual void add(Step& step, const Visit& visit) = 0;
  /// What the ranks of a stage do next, and after that, if anything.
  virtual void upcoming(const Action& /*now*/, const Action* /*next*/) {}
  /// Nothing leaves the GPU.
  virtual bool stays_on_gpu() const { return true; }
  /// A policy that adapts is first asked for a plan of this many iterations, learns from their
  /// timeline, whichever executor ran it, and plans again. 0: it does not adapt.
  virtual std::int32_t profiling_iterations() const { return 0; }
  virtual void learn(const Timeline& /*of the profiling plan*/) {}
  /// Whether several micro-batches may be between forward and backward.
  virtual bool knows_pipelines() const { return true; }
  /// Iterations of a run whose last two are steady.
  virtual std::int32_t least_iterations() const { return 1; }
  /// Bytes of one micro-batch that are on a GPU at the same time when forward has ended, at least.
  virtual Bytes least_kept(const LayerGraph&) const { return Bytes(0); }
  /// "full recomputation"
  virtual std::string describe() const = 0;
};

class ParameterPolicy {
 public:
  virtual ~ParameterPolicy() = default;
  virtual void prepare(Step& step) = 0;
  /// Brings shards of this rank, part of layer `item`, to the GPU, no earlier than `after`. Appends
  /// to `ready` what a gather of them has to wait for.
  virtual void fetch(Step& step, std::uint16_t rank, std::int32_t item, const Shards& shards,
                     std::span<const TaskId> after, std::vector<TaskId>& ready) const = 0;
  /// New 16-bit values of these shards are in host memory after `after`; returns
  /// the task after which they are where fetch finds them.
  virtual TaskId store(Step& step, std::uint16_t rank, const Shards& shards, std::int32_t item,
                       std::span<const TaskId> after) const = 0;
  /// Adds what an iteration of `rank` cannot do without. Called after prepare, of one stage.
  virtual void add_least(const Step&, std::uint16_t /*rank*/, LeastWork&) const {}
  virtual bool stays_on_gpu() const { return false; }
  virtual std::string describe() const = 0;
};

class OptimizerPolicy {
 public:
  virtual ~OptimizerPolicy() = default;
  /// Pools, lanes and buffers that live as long as the run. Begins a new plan: nothing is
  /// remembered of an earlier one.
  virtual void prepare(Step& step) = 0;
  /// A bucket of gradients has been reduced on `rank`.
  virtual void gradients(Step& step, std::uint16_t rank, const Bucket& bucket, TaskId reduced) = 0;
  /// The update phase of `rank`, from its main thread's present moment.
  virtual void update(Step& step, std::uint16_t rank, const ParameterPolicy& parameters) = 0;
  /// Adds what an iteration of `rank` cannot do without. Called after prepare, of one stage.
  virtual void add_least(const Step&, std::uint16_t /*rank*/, LeastWork&) const {}
  virtual bool stays_on_gpu() const { return false; }
  virtual std::string describe() const = 0;
};

struct Policy {
  ZeroOptions zero;
  bool pins_powers_of_two = true;  ///< pinned_allocations: power_of_two | exact
  std::unique_ptr<ActivationPolicy> activations;
  std::unique_ptr<ParameterPolicy> parameters;
  std::unique_ptr<OptimizerPolicy> optimizer;
  /// Nothing leaves the GPU: ranks of a tensor-parallel group are alike.
  bool stays_on_gpu() const;
  std::string describe() const;
};

/// One line of the table: {section, name, help}.
struct PolicyEntry {
  std::string_view section, name, help;
};
std::span<const PolicyEntry> policy_table();

/// The `policy:` section of a scenario. A missing section or choice means keep, resident, resident.
/// Unknown names are located errors that list the known ones. Machine facts are checked here: a
/// path that the node does not have, more GPUs than it has.
Policy read_policy(const yaml::Node& node, const Machine& machine);

}  // namespace tidegate
