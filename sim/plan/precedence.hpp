#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "sim/plan/plan.hpp"

namespace tidegate {

/// What waits for what in a plan: dependencies, and the order of lanes.
class Precedence {
 public:
  /// The plan must outlive it, and its references must be right.
  explicit Precedence(const Plan& plan);

  /// Two tasks that wait for each other, if any; then the rest of this class has no answers.
  const std::optional<std::pair<TaskId, TaskId>>& cycle() const { return cycle_; }

  /// Whether `task` starts no earlier than `before` starts, by dependencies and the order of lanes.
  /// A search back from `task`: a few steps in plans that policies make, at worst all tasks between
  /// the two.
  bool comes_after(TaskId task, TaskId before);

 private:
  const Plan& plan_;
  std::vector<TaskId> lane_before_;      // the last task before each on its lane, or none
  std::vector<std::uint32_t> position_;  // in an order that respects dependencies and lanes
  std::vector<std::uint32_t> seen_;      // by task: the last search that visited it
  std::vector<TaskId> stack_;
  std::uint32_t search_ = 0;
  std::optional<std::pair<TaskId, TaskId>> cycle_;

  void put_in_order();
};

}  // namespace tidegate
