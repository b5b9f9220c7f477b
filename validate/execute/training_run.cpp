#include "validate/execute/training_run.hpp"

#include <utility>

#include "models/base/error.hpp"
#include "validate/engine/dispatcher.hpp"

namespace tidegate {
namespace {

Timeline dispatch(const Plan& plan, Worker& worker) {
  Dispatcher dispatcher(plan, worker);
  dispatcher.to_end();
  return dispatcher.take_timeline();
}

}  // namespace

TrainingRun train_on(const Rig& rig, const Plan& plan, const Workload& workload,
                     const LayerGraph& graph, const train::TrainingOptions& options,
                     RankOptions ranks) {
  using Sharing = Memories::Sharing;
  TrainingWorker worker(plan, rig, workload, graph, options,
                        ranks.are_processes ? Sharing::shared : Sharing::own);
  TrainingRun run;
  if (ranks.are_processes) {
    RankProcesses processes(plan, worker, ranks.deaths);
    run.timeline = dispatch(plan, processes);
    processes.collect();
  } else {
    run.timeline = dispatch(plan, worker);
  }
  run.training = {.losses = worker.losses(), .state = worker.state()};
  run.file_bytes_read = worker.moved().read;
  run.file_bytes_written = worker.moved().written;
  run.beside = worker.beside();
  return run;
}

}  // namespace tidegate
