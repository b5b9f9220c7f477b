#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "validate/execute/socket.hpp"
#include "validate/execute/training_worker.hpp"

/// The ranks of a plan as processes of one machine.
///
/// The plan's rules stay in one place: this process holds the dispatcher, which knows order, locks,
/// tokens, choices and pools, across ranks. The works of a rank's lanes are done in the process of
/// that rank, which forked from here before there was any thread: its arithmetic, its files and
/// their queues are its own, and the arenas and contents are memory that all share, so that a
/// reduction or a gather reads what the other ranks have written. Each seat of a lane is a thread
/// here that asks and a thread there that works; between them is a socket, and an answer on it is
/// what hands on the order of memory.
///
/// A process that dies ends the run: the error names the rank, the signal and the tasks under way.
/// The others are then killed. When this process dies, the system kills them all; files have no
/// names.
namespace tidegate {

/// A death put in on purpose: the process of `rank` kills itself when it is given its `at`-th work,
/// from 0.
struct Death {
  std::uint16_t rank = 0;
  std::int64_t at = 0;
};
struct RankOptions {
  bool are_processes = false;
  std::vector<Death> deaths;
};

class RankProcesses : public Worker {
 public:
  /// Forks a process for each rank of the plan. Both outlive it; `worker` shares its memory.
  RankProcesses(const Plan& plan, TrainingWorker& worker, const std::vector<Death>& deaths = {});
  ~RankProcesses() override;
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  void sit_down(Seat seat) override;
  void allocate(BufferId buffer, TaskId task) override { worker_.allocate(buffer, task); }
  void free(BufferId buffer) override { worker_.free(buffer); }
  void begin(TaskId task) override { worker_.begin(task); }
  void end(TaskId task) override { worker_.end(task); }
  Clock::time_point run(TaskId task, Seat seat, Clock::time_point start) override;
  void pass(TaskId task) override;
  void stop() override;

  /// Adds the results of all processes to the worker's, after the last task.
  void collect();

  std::vector<pid_t> processes() const;

 private:
  struct Process {
    pid_t id = -1;
    Socket control;
    std::mutex mutex;            // of the control socket
    std::mutex under_way_mutex;  // of what follows
    std::multiset<std::uint32_t> under_way;
    bool is_reaped = false, had_to_be_ended = false;
    int status = 0;
  };

  const Plan& plan_;
  TrainingWorker& worker_;
  std::vector<std::unique_ptr<Process>> processes_;  // by rank
  std::vector<Socket> seats_;

  void start(std::uint16_t rank, const std::vector<Death>& deaths);
  void forget(BufferId buffer);
  std::uint16_t rank_of(LaneId lane) const { return plan_.lanes[index(lane)].rank; }
  Clock::time_point ask(std::uint16_t rank, Socket& socket, TaskId task, const Command& command);
  std::string death_of(std::uint16_t rank);
  void reap(Process& process, bool kills);
};

}  // namespace tidegate
