#include "sim/engine/stuck.hpp"

#include <algorithm>
#include <vector>

namespace tidegate {
namespace {

std::string need_text(const Plan& plan, const Grants& grants, const Effect& need) {
  if (need.kind == Effect::Kind::lock) {
    const std::int32_t rank = grants.holder(static_cast<LockId>(need.target));
    const std::string& name = plan.locks[need.target].name;
    return rank < 0 ? "lock " + name : "lock " + name + ", held by rank " + std::to_string(rank);
  }
  return std::to_string(need.count) + " of tokens " + plan.tokens[need.target].name + ", " +
         std::to_string(grants.available(static_cast<TokenId>(need.target))) + " left";
}

std::string needs_text(const Plan& plan, const Grants& grants, TaskId task) {
  std::string text;
  for (const Effect& e : plan.effects(task)) {
    if (!grants.asks_for(e)) continue;
    if (!text.empty()) text += " and ";
    text += need_text(plan, grants, e);
  }
  return text;
}

std::string predecessor_text(const Plan& plan, const Order& order, TaskId task) {
  for (const TaskId before : plan.after(task)) {
    // Started tasks end by themselves, so the culprit has not started: its lane has not come to it.
    const Order::Queue& queue = order.queues[index(plan.task(before).lane)];
    const auto first = order.queued.begin() + queue.next;
    const auto last = order.queued.begin() + queue.end;
    if (std::binary_search(first, last, static_cast<std::uint32_t>(before))) {
      const std::string text = "the end of '" + plan.label(before) + "'";
      const auto ahead = static_cast<TaskId>(*first);
      if (ahead == before || ahead == task) return text;
      return text + ", which is queued behind '" + plan.label(ahead) + "'";
    }
  }
  return "its predecessors";
}

}  // namespace

std::string stuck_text(const Plan& plan, const Order& order, const Grants& grants) {
  std::vector<std::string> waiting, blocked;
  for (const Order::Queue& queue : order.queues) {
    if (queue.next == queue.end) continue;
    const auto task = static_cast<TaskId>(order.queued[queue.next]);
    const std::string subject = "'" + plan.label(task) + "' waits for ";
    if (queue.is_waiting) {
      waiting.push_back(subject + needs_text(plan, grants, task));
    } else {
      blocked.push_back(subject + predecessor_text(plan, order, task));
    }
  }
  waiting.insert(waiting.end(), blocked.begin(), blocked.end());
  std::string text = "the plan cannot go on";
  constexpr std::size_t most = 3;
  for (std::size_t i = 0; i < std::min(most, waiting.size()); ++i) {
    text += (i == 0 ? ": " : "; ") + waiting[i];
  }
  return text;
}

}  // namespace tidegate
