#include "validate/engine/rig.hpp"

#include "validate/engine/dispatcher.hpp"
#include "validate/engine/rig_worker.hpp"

namespace tidegate {

Execution run_on(const Rig& rig, const Plan& plan) {
  RigWorker worker(plan, rig);
  Dispatcher dispatcher(plan, worker);
  dispatcher.to_end();
  Execution result{.timeline = {}, .lateness = dispatcher.take_lateness()};
  result.timeline = dispatcher.take_timeline();
  return result;
}

}  // namespace tidegate
