#pragma once

#include <cstdint>
#include <vector>

#include "validate/engine/rig.hpp"
#include "validate/execute/processes.hpp"
#include "validate/train/training.hpp"

/// Real training under a plan, by the executor: threads or processes, arenas, files, locks.
namespace tidegate {

struct TrainingRun {
  Timeline timeline;
  train::Training training;  ///< losses as of training without a plan, and the state at the end
  std::int64_t file_bytes_read = 0, file_bytes_written = 0;  ///< whole pages
  std::int64_t beside = 0;  ///< bytes of contents that found no room in their buffers
};

/// Runs every task of a plan that carries its meaning, on a native rig. `workload` and `graph` are
/// those that the plan was made of; steps and ranks are the plan's, `options.start` the state to go
/// on from. Throws as run_on does, and MachineError when the process of a rank dies.
TrainingRun train_on(const Rig& rig, const Plan& plan, const Workload& workload,
                     const LayerGraph& graph, const train::TrainingOptions& options,
                     RankOptions ranks = {});

}  // namespace tidegate
