#include "validate/engine/rig.hpp"

#include <exception>
#include <thread>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "validate/engine/dispatcher.hpp"
#include "validate/engine/rig_worker.hpp"
#include "validate/engine/watch.hpp"

namespace tidegate {
namespace {

// The dispatcher is a thread of its own: priority of real time goes with it.
void run_in_time(Dispatcher& dispatcher) {
  std::exception_ptr error;
  std::thread thread([&] {
    wake_in_time();
    try {
      dispatcher.to_end();
    } catch (...) {
      error = std::current_exception();
    }
  });
  thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace

std::vector<std::string> folders_of(const Machine& machine, const std::vector<std::string>& asked) {
  const std::size_t paths = machine.paths().size();
  if (asked.size() > paths) {
    throw InputError(fmt::format("--storage is given {} times, but {} has {} storage paths",
                                 asked.size(), machine.name(), paths));
  }
  if (asked.size() == 1) return std::vector(paths, asked.front());
  return asked;
}

Execution run_on(const Rig& rig, const Plan& plan) {
  RigWorker worker(plan, rig);
  Dispatcher dispatcher(plan, worker);
  const Watch watch(rig.folders);
  run_in_time(dispatcher);
  Execution result{.timeline = {},
                   .lateness = dispatcher.take_lateness(),
                   .foreign = watch.so_far(),
                   .remarks = worker.remarks()};
  result.timeline = dispatcher.take_timeline();
  return result;
}

}  // namespace tidegate
