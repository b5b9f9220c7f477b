#include "sim/engine/run.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "models/base/error.hpp"
#include "sim/engine/heap.hpp"
#include "sim/engine/stuck.hpp"

namespace tidegate {
namespace {

// Most tasks that can run at the same time.
std::size_t most_running(const Plan& plan) {
  std::size_t room = 0;
  for (const Lane& lane : plan.lanes) room += lane.width;
  return std::min(room, plan.size());
}

// By class, the most flows at the same time: no lane contributes more than its width.
std::vector<std::uint32_t> most_flows(const Plan& plan, const Order& order,
                                      const FlowTable& table) {
  struct Count {
    std::uint32_t lane = std::numeric_limits<std::uint32_t>::max(), flows = 0;
  };
  std::vector<Count> counts(table.classes.size());
  std::vector<std::uint32_t> most(table.classes.size());
  for (std::uint32_t l = 0; l < order.queues.size(); ++l) {
    const Order::Queue& queue = order.queues[l];
    for (std::uint32_t i = queue.next; i < queue.end; ++i) {
      const std::size_t work = index(plan.tasks[order.queued[i]].work);
      const std::uint32_t c = table.kinds[table.kind[work]].flow_class;
      if (c == FlowKind::timer) continue;
      if (counts[c].lane != l) counts[c] = {l, 0};
      if (counts[c].flows++ < queue.width) ++most[c];
    }
  }
  return most;
}

const Plan& checked(const Plan& plan, std::span<const Demand> demands) {
  ensure(demands.size() == plan.works.size(), "every work of a plan has a price");
  for (const Task& task : plan.tasks) {
    ensure(index(task.work) < plan.works.size(), "a task does a work of the plan");
  }
  for (const Choice& choice : plan.choices) {
    ensure(index(choice.watched) < plan.size(), "a choice watches a task of the plan");
  }
  return plan;
}

}  // namespace

Run::Run(const Plan& plan, std::span<const Demand> demands, std::span<const Resource> resources)
    : plan_(checked(plan, demands)),
      table_(classify(demands, resources.size())),
      order_(order_of(plan)),
      outcomes_(plan.choices.size()),
      grants_(plan, outcomes_),
      ledger_(plan),
      sharing_(resources, table_, most_flows(plan, order_, table_), most_running(plan)) {
  timeline_.start.resize(plan.size());
  timeline_.end.resize(plan.size(), not_ended);
  candidates_.resize(plan.lanes.size());
  timers_.resize(most_running(plan));
  ended_.reserve(most_running(plan));
}

void Run::to_end() {
  for (Order::Queue& queue : order_.queues) offer(queue);
  for (;;) {
    pass_instant();
    sharing_.settle(now_);
    const Instant flow = sharing_.next();
    const Instant timer = timer_count_ > 0 ? timers_[0].at : never;
    const Instant next = std::min(flow, timer);
    if (next == never || ended_count_ == plan_.size()) break;
    now_ = next;
    if (timer == now_) take_timers();
    if (flow == now_) sharing_.take_ended(now_, ended_);
  }
  if (ended_count_ < plan_.size()) throw std::logic_error(stuck_text(plan_, order_, grants_));
}

Timeline Run::take_timeline() {
  timeline_.makespan = now_;
  timeline_.pools = ledger_.uses();
  timeline_.choices = std::move(outcomes_);
  return std::move(timeline_);
}

void Run::offer(Order::Queue& queue) {
  if (!queue.has_turn() || queue.is_candidate || queue.is_waiting) return;
  const std::uint32_t task = order_.queued[queue.next];
  if (order_.pending[task] > 0) return;
  queue.is_candidate = true;
  heap_push(candidates_.data(), candidate_count_++, {now_, task});
}

void Run::offer_again() {
  for (const TaskId task : grants_.again()) {
    const auto t = static_cast<std::uint32_t>(task);
    if (queue_of(t).is_candidate) continue;
    queue_of(t).is_candidate = true;
    heap_push(candidates_.data(), candidate_count_++, {timeline_.start[t], t});
  }
  grants_.clear_again();
}

void Run::pass_instant() {
  while (candidate_count_ > 0 || !ended_.empty()) {
    if (ended_.size() > 1) std::ranges::sort(ended_);
    for (const std::uint32_t task : ended_) end(task);
    ended_.clear();
    while (candidate_count_ > 0) {
      const Candidate candidate = candidates_[0];
      heap_pop(candidates_.data(), candidate_count_--);
      try_start(candidate);
    }
  }
}

void Run::try_start(const Candidate& candidate) {
  Order::Queue& queue = queue_of(candidate.task);
  const bool runs = plan_.tasks[candidate.task].when.holds(outcomes_);
  queue.is_candidate = false;
  queue.is_waiting = runs && !grants_.take(static_cast<TaskId>(candidate.task), candidate.began);
  if (queue.is_waiting) {
    timeline_.start[candidate.task] = candidate.began;
    return;
  }
  ++queue.next;
  ++queue.running;
  offer_again();
  runs ? start(candidate.task) : skip(candidate.task);
  offer(queue);
}

void Run::skip(std::uint32_t task) {
  timeline_.start[task] = now_;
  timeline_.end[task] = passing;
  ended_.push_back(task);
}

void Run::start(std::uint32_t task) {
  timeline_.start[task] = now_;
  if (!outcomes_.empty()) decide(task);
  for (const Effect& e : plan_.effects(static_cast<TaskId>(task))) {
    if (e.kind != Effect::Kind::allocate || !e.when.holds(outcomes_)) continue;
    ledger_.allocate(static_cast<BufferId>(e.target), static_cast<TaskId>(task), now_);
  }
  const std::size_t work = index(plan_.tasks[task].work);
  const FlowKind& kind = table_.kinds[table_.kind[work]];
  if (kind.flow_class != FlowKind::timer && kind.latency == 0) {
    sharing_.join(kind.flow_class, task, table_.alone[work], now_);
    return;
  }
  const bool is_timer = kind.flow_class == FlowKind::timer;
  const Instant wait = is_timer ? static_cast<Instant>(table_.alone[work]) : kind.latency;
  if (wait == 0) {
    ended_.push_back(task);
  } else {
    heap_push(timers_.data(), timer_count_++, {now_ + wait, task});
  }
}

void Run::take_timers() {
  while (timer_count_ > 0 && timers_[0].at == now_) {
    const std::uint32_t task = timers_[0].task;
    heap_pop(timers_.data(), timer_count_--);
    const std::size_t work = index(plan_.tasks[task].work);
    const FlowKind& kind = table_.kinds[table_.kind[work]];
    if (kind.flow_class == FlowKind::timer) {
      ended_.push_back(task);
    } else {
      sharing_.join(kind.flow_class, task, table_.alone[work], now_);
    }
  }
}

// No is what the outcome was until now.
void Run::decide(std::uint32_t task) {
  for (const Effect& e : plan_.effects(static_cast<TaskId>(task))) {
    if (e.kind != Effect::Kind::decide || !is_yes(plan_.choices[e.target])) continue;
    withdraw_waiting(static_cast<ChoiceId>(e.target));
    outcomes_[e.target] = 1;
  }
  offer_again();
}

// Lanes start their tasks in order, and the next of a lane has not started.
bool Run::is_yes(const Choice& choice) const {
  const std::size_t watched = index(choice.watched);
  if (choice.rule == Choice::Rule::unfinished) return timeline_.end[watched] == not_ended;
  const Order::Queue& queue = order_.queues[index(plan_.tasks[watched].lane)];
  return queue.next < queue.end && order_.queued[queue.next] <= watched;
}

// What waiting tasks ask for may change with the outcome: they are tried afresh, in their old
// place.
void Run::withdraw_waiting(ChoiceId choice) {
  for (Order::Queue& queue : order_.queues) {
    if (!queue.is_waiting) continue;
    const std::uint32_t task = order_.queued[queue.next];
    if (!hangs_on(task, choice)) continue;
    grants_.withdraw(static_cast<TaskId>(task));
    if (queue.is_candidate) continue;
    queue.is_candidate = true;
    heap_push(candidates_.data(), candidate_count_++, {timeline_.start[task], task});
  }
}

bool Run::hangs_on(std::uint32_t task, ChoiceId choice) const {
  const auto names = [choice](When when) { return !when.is_always() && when.choice() == choice; };
  return names(plan_.tasks[task].when) ||
         std::ranges::any_of(plan_.effects(static_cast<TaskId>(task)),
                             [&](const Effect& e) { return names(e.when); });
}

void Run::end(std::uint32_t task) {
  const bool has_run = timeline_.end[task] != passing;
  timeline_.end[task] = now_;
  ++ended_count_;
  if (has_run) end_effects(task);
  Order::Queue& queue = queue_of(task);
  --queue.running;
  offer(queue);
  for (const std::uint32_t after : order_.successors(task)) {
    if (--order_.pending[after] > 0) continue;
    Order::Queue& lane = queue_of(after);
    if (lane.next < lane.end && order_.queued[lane.next] == after) offer(lane);
  }
}

void Run::end_effects(std::uint32_t task) {
  for (const Effect& e : plan_.effects(static_cast<TaskId>(task))) {
    if (e.kind != Effect::Kind::free || !e.when.holds(outcomes_)) continue;
    ledger_.free(static_cast<BufferId>(e.target));
  }
  grants_.give_back(static_cast<TaskId>(task));
  offer_again();
}

}  // namespace tidegate
