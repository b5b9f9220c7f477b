#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/plan/plan.hpp"

/// Whose turn it is: dependencies turned round, and the queues of the lanes. The engine counts
/// `pending` down and moves `next` on while it runs.
namespace tidegate {

struct Order {
  struct Queue {
    std::uint32_t next = 0, end = 0;  ///< tasks not yet started: queued[next, end)
    std::uint16_t width = 1, running = 0;
    bool is_candidate = false;  ///< its next task is about to be tried
    bool is_waiting = false;    ///< its next task waits for tokens or a lock
    bool has_turn() const { return next < end && running < width; }
  };

  std::vector<std::uint32_t> pending;          ///< predecessors that have not ended, by task
  std::vector<std::uint32_t> first_successor;  ///< by task, and one more
  std::vector<std::uint32_t> successor_list;
  std::vector<std::uint32_t> queued;  ///< tasks lane by lane, in task order
  std::vector<Queue> queues;          ///< by lane

  std::span<const std::uint32_t> successors(std::uint32_t task) const {
    return {successor_list.data() + first_successor[task],
            first_successor[task + 1] - first_successor[task]};
  }
};

Order order_of(const Plan& plan);

}  // namespace tidegate
