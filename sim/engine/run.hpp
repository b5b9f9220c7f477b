#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/demand.hpp"
#include "sim/engine/flow_class.hpp"
#include "sim/engine/grants.hpp"
#include "sim/engine/ledger.hpp"
#include "sim/engine/order.hpp"
#include "sim/engine/sharing.hpp"
#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"

/// One run of a plan, in its two parts: setting up, which allocates everything, and the loop over
/// events, which allocates nothing. simulate() does both; bench/ times them apart.
///
/// At each instant: ends, then starts, in task order, again while tasks without duration end at
/// once; then the flows get their new speeds. A choice is taken among the starts, in its task's
/// place.
namespace tidegate {

class Run {
 public:
  /// demands[i] belongs to plan.works[i]. Plan and resources must outlive the run.
  Run(const Plan& plan, std::span<const Demand> demands, std::span<const Resource> resources);

  Run(const Run&) = delete;  // parts refer to each other

  /// The loop. Throws std::logic_error when tasks are left that nothing can start.
  void to_end();
  /// After to_end.
  Timeline take_timeline();

 private:
  static constexpr Instant not_ended = -1, passing = -2;  // in place of an end

  struct Timer {
    Instant at;
    std::uint32_t task;
    bool operator<(const Timer& o) const { return at != o.at ? at < o.at : task < o.task; }
  };
  struct Candidate {
    Instant began;
    std::uint32_t task;
    bool operator<(const Candidate& o) const {
      return began != o.began ? began < o.began : task < o.task;
    }
  };

  const Plan& plan_;
  FlowTable table_;
  Order order_;
  std::vector<std::uint8_t> outcomes_;  // by choice
  Grants grants_;
  Ledger ledger_;
  Sharing sharing_;
  Timeline timeline_;  // start of a waiting task: when it began to wait
  std::vector<Candidate> candidates_;
  std::vector<Timer> timers_;
  std::vector<std::uint32_t> ended_;
  std::uint32_t candidate_count_ = 0, timer_count_ = 0;
  std::size_t ended_count_ = 0;
  Instant now_ = 0;

  Order::Queue& queue_of(std::uint32_t task) {
    return order_.queues[index(plan_.tasks[task].lane)];
  }
  void offer(Order::Queue& queue);
  void offer_again();
  void pass_instant();
  void try_start(const Candidate& candidate);
  void start(std::uint32_t task);
  void skip(std::uint32_t task);
  void decide(std::uint32_t task);
  bool is_yes(const Choice& choice) const;
  void withdraw_waiting(ChoiceId choice);
  bool hangs_on(std::uint32_t task, ChoiceId choice) const;
  void take_timers();
  void end(std::uint32_t task);
  void end_effects(std::uint32_t task);
};

}  // namespace tidegate
