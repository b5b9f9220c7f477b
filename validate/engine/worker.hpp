#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "models/work.hpp"
#include "sim/plan/plan.hpp"

/// Whoever does the works of a plan for real. The dispatcher says when; a worker says how.
namespace tidegate {

using Clock = std::chrono::steady_clock;

/// One thread of one lane. A lane of width w has w seats.
struct Seat {
  LaneId lane{};
  std::uint32_t number = 0;  ///< through all lanes
};

class Worker {
 public:
  virtual ~Worker() = default;
  /// Called once by each seat's thread, before the clock starts.
  virtual void sit_down(Seat seat) = 0;
  /// A buffer comes into being with the start of a task, and goes. Called by the dispatcher alone;
  /// what the threads do with the buffer comes after the one and before the other. allocate throws
  /// MachineError when the pool is full.
  virtual void allocate(BufferId buffer, TaskId task) = 0;
  virtual void free(BufferId buffer) = 0;
  /// Does the work of a task that started at `start`, and returns when it should have been over at
  /// the speeds that the worker keeps to: the moment itself, or an earlier one if the system woke
  /// the thread late. Several seats run at the same time. Throws MachineError on a failure.
  virtual Clock::time_point run(TaskId task, Seat seat, Clock::time_point start) = 0;
  /// A task starts, after its allocations, and is over, before its frees. Called by the dispatcher
  /// alone, for tasks that are not skipped.
  virtual void begin(TaskId /*task*/) {}
  virtual void end(TaskId /*task*/) {}
  /// A task without work takes place, between its allocations and its frees. Called by the
  /// dispatcher alone, for which no time passes meanwhile.
  virtual void pass(TaskId /*task*/) {}
  /// Makes the works under way return or throw soon. From any thread.
  virtual void stop() = 0;
};

/// Through all lanes.
std::size_t seats_of(const Plan& plan);

/// Work that is over as soon as it begins.
bool is_nothing(const Work& work);

}  // namespace tidegate
