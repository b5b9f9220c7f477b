#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "sim/engine/grants.hpp"
#include "sim/engine/ledger.hpp"
#include "sim/engine/order.hpp"
#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"
#include "validate/engine/worker.hpp"

/// Runs a plan in real time: the rules of sim/plan/plan.hpp, with a clock that nobody can stop.
///
/// One thread, the caller's, decides; each seat of a lane is a thread that works. Each time that
/// works are over, the dispatcher reads the clock once and treats what it finds as one instant:
/// ends in task order, then starts, again while tasks without work end at once. So a start is never
/// before the end of what it waits for, and choices see the same order as the timeline tells.
/// Tokens and locks go to waiters as in virtual time (sim/engine/grants.hpp).
///
/// A task's start is the instant when it was given to its lane, its end the instant when the
/// dispatcher knew that its work was over.
namespace tidegate {

class Dispatcher {
 public:
  Dispatcher(const Plan& plan, Worker& worker);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// Once. Rethrows what a work throws, when all threads have come to rest. Throws std::logic_error
  /// when tasks are left that nothing can start.
  void to_end();

  /// After to_end.
  Timeline take_timeline();
  /// By task, how long after the work should have been over its end was: what the operating system
  /// and the dispatcher added.
  std::vector<Instant> take_lateness() { return std::move(lateness_); }

 private:
  static constexpr Instant not_ended = -1, passing = -2;  // in place of an end

  struct Candidate {
    Instant began;
    std::uint32_t task;
    bool operator>(const Candidate& o) const {
      return began != o.began ? began > o.began : task > o.task;
    }
  };
  struct Over {
    std::uint32_t task;
    Clock::time_point due;
    std::exception_ptr error;
  };
  struct Desk {  // of a lane: what its seats are to do
    std::mutex mutex;
    std::condition_variable filled;
    std::deque<std::uint32_t> tasks;
    bool is_closed = false;
  };

  const Plan& plan_;
  Worker& worker_;
  Order order_;
  std::vector<std::uint8_t> outcomes_;
  Grants grants_;
  Ledger ledger_;
  Timeline timeline_;
  std::vector<Instant> lateness_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates_;
  std::vector<std::uint32_t> ended_;
  std::size_t ended_count_ = 0, working_ = 0;
  Instant now_ = 0;
  Clock::time_point zero_;

  std::deque<Desk> desks_;  // by lane
  std::vector<std::thread> threads_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<Over> over_;
  std::size_t seated_ = 0;
  std::exception_ptr not_seated_;

  void seat_all();
  void sit(Seat seat);
  void close();
  void run();
  void wait();
  Order::Queue& queue_of(std::uint32_t task) {
    return order_.queues[index(plan_.tasks[task].lane)];
  }
  void offer(std::uint32_t lane);
  void again(std::uint32_t task);
  void offer_again();
  void pass_instant();
  void try_start(const Candidate& candidate);
  void start(std::uint32_t task);
  void skip(std::uint32_t task);
  void decide(std::uint32_t task);
  bool is_yes(const Choice& choice) const;
  void withdraw_waiting(ChoiceId choice);
  void end(std::uint32_t task);
  void end_effects(std::uint32_t task);
};

}  // namespace tidegate
