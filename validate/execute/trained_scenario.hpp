#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "sim/run/predict.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/compare/comparison.hpp"
#include "validate/execute/training_run.hpp"

/// A scenario's training under its plan, beside the same training without offload.
namespace tidegate {

struct TrainRequest {
  /// Folders of the storage paths in the profile's order; one serves them all.
  std::vector<std::string> storage;
  std::int64_t steps = 10;  ///< of the whole training
  std::uint64_t seed = 1;
  bool in_one_process = false;  ///< ranks are threads; else several ranks are processes
  std::string checkpoint;       ///< folder for states; empty: none
  std::int64_t every = 0;       ///< steps between them; 0: after the last alone
  std::string resume;           ///< a state, or the newest of a folder, to go on from
  std::vector<Death> deaths;
  /// Computes both trainings; null: cores. Else it outlives the call, and ranks are threads, since
  /// what a GPU's library has begun does not survive a fork.
  const train::Backend* backend = nullptr;
};

struct TrainedScenario {
  std::string scenario, policy, profile;
  std::int32_t ranks = 1;
  bool are_processes = false;
  std::int64_t parameters = 0;
  std::int64_t first_step = 0;        ///< steps that were done before
  std::vector<double> losses, alone;  ///< by step done here, mean over micro-steps and ranks
  std::size_t numbers = 0;            ///< of parameters and moments
  std::size_t other_losses = 0;       ///< of micro-steps and ranks: not the same bits
  std::size_t other_numbers = 0;      ///< the same of `numbers`
  std::string place;                  ///< what computed: "on cores"
  std::string products;               ///< how matrices were multiplied, Backend::products_text
  Seconds predicted;                  ///< iteration on the machine of the profile
  Seconds measured, alone_measured;   ///< step here, under the plan and without one
  std::int64_t file_bytes_read = 0, file_bytes_written = 0, beside = 0;
  std::vector<std::string> checkpoints;
  /// Tasks of the last steps by kind, in the time of the profile's devices and in that of this
  /// machine; those of kernels are arithmetic in fp32 at `place`, whatever the profile is of.
  std::vector<Group> kinds;
  SimulatedPlan plan;  ///< the last that was run, as predicted for the machine of the profile
  Timeline timeline;   ///< of that run

  bool is_same() const { return other_losses == 0 && other_numbers == 0; }
};

/// Trains under the scenario's plan, and without any from the first step on. With checkpoints, the
/// plan is one of `every` steps that is run again and again, each from the state that the one
/// before left. Throws InputError for what cannot be run: several nodes, ranks that stand for
/// others, a plan that does not fit its profile or whose arithmetic does not fit this machine,
/// operators or a policy without a meaning, storage without a folder; and as train_on does.
TrainedScenario train_scenario(Scenario& scenario, const TrainRequest& request);

std::string to_text(const TrainedScenario& trained);
/// docs/run_json.md
std::string to_json(const TrainedScenario& trained);

}  // namespace tidegate
