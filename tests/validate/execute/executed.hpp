#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/sim/policy/meaning.hpp"
#include "validate/execute/training_run.hpp"

/// Plans of tiny networks, trained by the executor in the system's folder for temporary files.
namespace tidegate::executed {

inline Rig rig_of(const meant::Run& run) {
  return {.machine = run.scenario.machine,
          .pace = Pace::native,
          .folders = std::vector<std::string>(run.scenario.machine.paths().size(),
                                              std::filesystem::temp_directory_path().string())};
}

/// As many steps as the plan has, from the beginning.
inline train::TrainingOptions options_of(const meant::Run& run) {
  return {.seed = 3,
          .steps = run.plan.iterations,
          .ranks = run.plan.ranks / run.scenario.workload.pipeline_parallel,
          .adam = {.rate = 1e-2F},
          .update = run.plan.meaning.update,
          .reduces_every_micro_step = run.scenario.policy.zero.stage >= 2};
}

/// Somebody else's worker, whose tasks of one name begin 20 ms after their start.
class Late : public Worker {
 public:
  Late(const Plan& plan, Worker& worker, std::string name)
      : plan_(plan), worker_(worker), name_(std::move(name)) {}

  void sit_down(Seat seat) override { worker_.sit_down(seat); }
  void allocate(BufferId buffer, TaskId task) override { worker_.allocate(buffer, task); }
  void free(BufferId buffer) override { worker_.free(buffer); }
  void begin(TaskId task) override { worker_.begin(task); }
  void end(TaskId task) override { worker_.end(task); }
  Clock::time_point run(TaskId task, Seat seat, Clock::time_point start) override {
    if (plan_.names[index(plan_.task(task).name)] == name_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++tasks;
    }
    return worker_.run(task, seat, start);
  }
  void pass(TaskId task) override { worker_.pass(task); }
  void stop() override { worker_.stop(); }

  std::atomic<int> tasks = 0;  ///< that were late

 private:
  const Plan& plan_;
  Worker& worker_;
  std::string name_;
};

}  // namespace tidegate::executed
