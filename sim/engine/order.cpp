#include "sim/engine/order.hpp"

#include <limits>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

void turn_round(const Plan& plan, Order& order) {
  const auto count = static_cast<std::uint32_t>(plan.size());
  order.pending.resize(count);
  order.first_successor.resize(std::size_t{count} + 1);
  order.successor_list.resize(plan.after_list.size());
  for (const TaskId before : plan.after_list) {
    ensure(index(before) < count, "a predecessor is a task of the plan");
    ++order.first_successor[index(before)];
  }
  std::uint32_t end = 0;
  for (std::uint32_t& first : order.first_successor) first = end += first;
  // Rows are filled from their ends, so that each `first` is right when its row is full.
  for (std::uint32_t t = count; t-- > 0;) {
    const auto after = plan.after(static_cast<TaskId>(t));
    order.pending[t] = static_cast<std::uint32_t>(after.size());
    for (const TaskId before : after)
      order.successor_list[--order.first_successor[index(before)]] = t;
  }
}

void queue_up(const Plan& plan, Order& order) {
  order.queues.resize(plan.lanes.size());
  order.queued.resize(plan.size());
  for (const Task& task : plan.tasks) {
    ensure(index(task.lane) < plan.lanes.size(), "a task is on a lane of the plan");
    ++order.queues[index(task.lane)].end;
  }
  std::uint32_t first = 0;
  for (std::size_t l = 0; l < plan.lanes.size(); ++l) {
    Order::Queue& queue = order.queues[l];
    queue.width = plan.lanes[l].width;
    queue.next = first;
    first += queue.end;
    queue.end = queue.next;
  }
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    order.queued[order.queues[index(plan.tasks[t].lane)].end++] = t;
  }
}

}  // namespace

Order order_of(const Plan& plan) {
  ensure(plan.size() < std::numeric_limits<std::uint32_t>::max() &&
             plan.after_list.size() < std::numeric_limits<std::uint32_t>::max(),
         "a plan has fewer than 2^32 tasks and dependencies");
  Order order;
  turn_round(plan, order);
  queue_up(plan, order);
  return order;
}

}  // namespace tidegate
