#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"

/// Tokens and locks, and who waits for them.
///
/// A task takes everything that its effects ask for at once, or waits. It may take tokens unless
/// too few are left or an earlier waiter finds too few of the same tokens; a lock when it is free
/// or held by the task's rank. A task that waits for something else holds up nobody. Waiters are
/// tried again in the order in which they began to wait, ties by task number; the caller does the
/// trying: give back and take say which tasks are worth it.
///
/// Needs and releases that hang on a choice count when it has that outcome at the moment of asking.
///
/// A lane has at most one waiting task, so that queues are linked through the lanes: nothing is
/// allocated after construction.
namespace tidegate {

class Grants {
 public:
  /// outcomes: of the plan's choices. Both must outlive the grants.
  Grants(const Plan& plan, const std::vector<std::uint8_t>& outcomes);

  /// Takes what `task` asks for, and leaves its queues. False when it has to wait: then it is in
  /// the queues from `began` on.
  bool take(TaskId task, Instant began) { return !has(task, asks) || take_needs(task, began); }
  /// The end of a task: its releases, and its lock.
  void give_back(TaskId task) {
    if (has(task, gives)) give_back_needs(task);
  }
  /// Takes a waiting task out of its queues. To be done before an outcome changes what it asks for.
  void withdraw(TaskId task);
  /// Waiting tasks to be tried again since the last clear_again, each once.
  std::span<const TaskId> again() const { return again_; }
  void clear_again() {
    if (!again_.empty()) clear_all_again();
  }

  /// Whether a task with this effect asks for tokens or a lock, as things stand.
  bool asks_for(const Effect& effect) const;
  std::int32_t available(TokenId tokens) const { return pools_[index(tokens)].available; }
  /// The rank that holds a lock, -1 when it is free.
  std::int32_t holder(LockId lock) const { return locks_[index(lock)].rank; }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  struct Queue {
    std::uint32_t first = none, last = none;
  };
  struct Place {  ///< of a lane's waiting task in the queue of one of its needs
    std::uint32_t before = none, behind = none;
    std::int32_t count = 0;
  };
  struct TokenPool {
    std::int32_t available = 0;
    Queue queue;
  };
  struct LockState {
    std::int32_t rank = -1, holders = 0;
    Queue queue;
  };
  struct Waiter {  ///< by lane
    TaskId task{};
    Instant began = 0;
    bool is_waiting = false, is_again = false;
  };

  const Plan& plan_;
  const std::vector<std::uint8_t>& outcomes_;
  std::vector<TokenPool> pools_;
  std::vector<LockState> locks_;
  std::vector<Waiter> waiters_;
  std::vector<Place> places_;  // by lane and need: lane · needs_ + need
  std::uint32_t needs_ = 0;
  static constexpr std::uint8_t asks = 1, gives = 2;
  std::vector<std::uint8_t> parts_;  // by task, of asks and gives; empty in a plan without any

  bool has(TaskId task, std::uint8_t part) const {
    return !parts_.empty() && (parts_[index(task)] & part) != 0;
  }
  std::vector<TaskId> again_;

  void look_through();
  bool take_needs(TaskId task, Instant began);
  void give_back_needs(TaskId task);
  void clear_all_again();
  Queue& queue_of(const Effect& need);
  bool may_take(const Effect& need, std::uint16_t rank, std::uint32_t place) const;
  bool is_blocked(const TokenPool& pool, std::uint32_t place) const;
  void take_one(const Effect& need, std::uint16_t rank);
  void give_one(const Effect& need);
  void take_back(TaskId task, std::uint32_t needs_taken);
  void enqueue(TaskId task, Instant began);
  void leave(TaskId task);
  void link(Queue& queue, std::uint32_t place);
  void unlink(Queue& queue, std::uint32_t place);
  void retry(const Effect& need);
  void retry(Waiter& waiter);
  bool is_later(std::uint32_t a, std::uint32_t b) const;
  Waiter& waiter_at(std::uint32_t place) { return waiters_[place / needs_]; }
  const Waiter& waiter_at(std::uint32_t place) const { return waiters_[place / needs_]; }
};

}  // namespace tidegate
