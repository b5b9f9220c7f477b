#include "validate/engine/dispatcher.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "models/base/error.hpp"
#include "sim/engine/stuck.hpp"

namespace tidegate {
namespace {

constexpr Instant ticks_per_ns = 1000;

Instant ticks_between(Clock::time_point from, Clock::time_point to) {
  return ticks_per_ns * std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count();
}

bool hangs_on(const Plan& plan, std::uint32_t task, ChoiceId choice) {
  const auto names = [choice](When when) { return !when.is_always() && when.choice() == choice; };
  return names(plan.tasks[task].when) ||
         std::ranges::any_of(plan.effects(static_cast<TaskId>(task)),
                             [&](const Effect& e) { return names(e.when); });
}

}  // namespace

Dispatcher::Dispatcher(const Plan& plan, Worker& worker)
    : plan_(plan),
      worker_(worker),
      order_(order_of(plan)),
      outcomes_(plan.choices.size()),
      grants_(plan, outcomes_),
      ledger_(plan),
      lateness_(plan.size()) {
  timeline_.start.resize(plan.size());
  timeline_.end.resize(plan.size(), not_ended);
  for (const Choice& choice : plan.choices) {
    ensure(index(choice.watched) < plan.size(), "a choice watches a task of the plan");
  }
}

Dispatcher::~Dispatcher() { close(); }

void Dispatcher::to_end() {
  try {
    seat_all();
    run();
  } catch (...) {
    worker_.stop();
    close();
    throw;
  }
  close();
}

Timeline Dispatcher::take_timeline() {
  timeline_.makespan = now_;
  timeline_.pools = ledger_.uses();
  timeline_.choices = std::move(outcomes_);
  return std::move(timeline_);
}

// A lane whose tasks have no work needs nobody; no lane needs more seats than tasks with work.
void Dispatcher::seat_all() {
  std::vector<std::size_t> works(plan_.lanes.size());
  for (const Task& task : plan_.tasks) {
    if (!is_nothing(plan_.works[index(task.work)])) ++works[index(task.lane)];
  }
  desks_.resize(plan_.lanes.size());
  for (std::size_t l = 0; l < works.size(); ++l) {
    const std::size_t seats = std::min<std::size_t>(works[l], plan_.lanes[l].width);
    for (std::size_t s = 0; s < seats; ++s) {
      const Seat seat{static_cast<LaneId>(l), static_cast<std::uint32_t>(threads_.size())};
      threads_.emplace_back([this, seat] { sit(seat); });
    }
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return seated_ == threads_.size(); });
  if (not_seated_) std::rethrow_exception(not_seated_);
}

void Dispatcher::sit(Seat seat) {
  std::exception_ptr error;
  try {
    worker_.sit_down(seat);
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    ++seated_;
    if (error && !not_seated_) not_seated_ = error;
  }
  changed_.notify_all();
  Desk& desk = desks_[index(seat.lane)];
  for (;;) {
    std::unique_lock at_desk(desk.mutex);
    desk.filled.wait(at_desk, [&] { return desk.is_closed || !desk.tasks.empty(); });
    if (desk.is_closed) return;
    Over over{desk.tasks.front(), {}, nullptr};
    desk.tasks.pop_front();
    at_desk.unlock();
    try {
      const auto start =
          zero_ + std::chrono::nanoseconds(timeline_.start[over.task] / ticks_per_ns);
      over.due = worker_.run(static_cast<TaskId>(over.task), seat, start);
    } catch (...) {
      over.error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      over_.push_back(std::move(over));
    }
    changed_.notify_one();
  }
}

void Dispatcher::close() {
  for (Desk& desk : desks_) {
    {
      const std::lock_guard lock(desk.mutex);
      desk.is_closed = true;
    }
    desk.filled.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Dispatcher::run() {
  zero_ = Clock::now();
  for (std::uint32_t l = 0; l < order_.queues.size(); ++l) offer(l);
  for (;;) {
    pass_instant();
    if (ended_count_ == plan_.size()) return;
    if (working_ == 0) throw std::logic_error(stuck_text(plan_, order_, grants_));
    wait();
  }
}

// Time never stands still between two instants, so that no tie hides which came first.
void Dispatcher::wait() {
  std::vector<Over> over;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !over_.empty(); });
    over.swap(over_);
  }
  const Clock::time_point now = Clock::now();
  now_ = std::max(now_ + 1, ticks_between(zero_, now));
  for (const Over& o : over) {
    if (o.error) std::rethrow_exception(o.error);
    lateness_[o.task] = std::max<Instant>(0, now_ - ticks_between(zero_, o.due));
    ended_.push_back(o.task);
  }
  working_ -= over.size();
}

void Dispatcher::offer(std::uint32_t lane) {
  Order::Queue& queue = order_.queues[lane];
  if (!queue.has_turn() || queue.is_candidate || queue.is_waiting) return;
  const std::uint32_t task = order_.queued[queue.next];
  if (order_.pending[task] > 0) return;
  queue.is_candidate = true;
  candidates_.push({now_, task});
}

void Dispatcher::again(std::uint32_t task) {
  if (queue_of(task).is_candidate) return;
  queue_of(task).is_candidate = true;
  candidates_.push({timeline_.start[task], task});
}

void Dispatcher::offer_again() {
  for (const TaskId task : grants_.again()) again(static_cast<std::uint32_t>(task));
  grants_.clear_again();
}

void Dispatcher::pass_instant() {
  while (!candidates_.empty() || !ended_.empty()) {
    std::ranges::sort(ended_);
    for (const std::uint32_t task : ended_) end(task);
    ended_.clear();
    while (!candidates_.empty()) {
      const Candidate candidate = candidates_.top();
      candidates_.pop();
      try_start(candidate);
    }
  }
}

void Dispatcher::try_start(const Candidate& candidate) {
  const std::uint32_t task = candidate.task;
  Order::Queue& queue = queue_of(task);
  const bool runs = plan_.tasks[task].when.holds(outcomes_);
  queue.is_candidate = false;
  queue.is_waiting = runs && !grants_.take(static_cast<TaskId>(task), candidate.began);
  if (queue.is_waiting) {
    timeline_.start[task] = candidate.began;
    return;
  }
  ++queue.next;
  ++queue.running;
  offer_again();
  runs ? start(task) : skip(task);
  offer(static_cast<std::uint32_t>(index(plan_.tasks[task].lane)));
}

void Dispatcher::skip(std::uint32_t task) {
  timeline_.start[task] = now_;
  timeline_.end[task] = passing;
  ended_.push_back(task);
}

void Dispatcher::start(std::uint32_t task) {
  timeline_.start[task] = now_;
  decide(task);
  for (const Effect& e : plan_.effects(static_cast<TaskId>(task))) {
    if (e.kind != Effect::Kind::allocate || !e.when.holds(outcomes_)) continue;
    worker_.allocate(static_cast<BufferId>(e.target), static_cast<TaskId>(task));
    ledger_.allocate(static_cast<BufferId>(e.target), static_cast<TaskId>(task), now_);
  }
  worker_.begin(static_cast<TaskId>(task));
  if (is_nothing(plan_.work(static_cast<TaskId>(task)))) {
    worker_.pass(static_cast<TaskId>(task));
    ended_.push_back(task);
    return;
  }
  ++working_;
  Desk& desk = desks_[index(plan_.tasks[task].lane)];
  {
    const std::lock_guard lock(desk.mutex);
    desk.tasks.push_back(task);
  }
  desk.filled.notify_one();
}

// No is what the outcome was until now.
void Dispatcher::decide(std::uint32_t task) {
  for (const Effect& e : plan_.effects(static_cast<TaskId>(task))) {
    if (e.kind != Effect::Kind::decide || !is_yes(plan_.choices[e.target])) continue;
    withdraw_waiting(static_cast<ChoiceId>(e.target));
    outcomes_[e.target] = 1;
  }
  offer_again();
}

// Lanes start their tasks in order, and the next of a lane has not started.
bool Dispatcher::is_yes(const Choice& choice) const {
  const std::size_t watched = index(choice.watched);
  if (choice.rule == Choice::Rule::unfinished) return timeline_.end[watched] == not_ended;
  const Order::Queue& queue = order_.queues[index(plan_.tasks[watched].lane)];
  return queue.next < queue.end && order_.queued[queue.next] <= watched;
}

// What waiting tasks ask for may change with the outcome: they are tried afresh, in their old
// place.
void Dispatcher::withdraw_waiting(ChoiceId choice) {
  for (const Order::Queue& queue : order_.queues) {
    if (!queue.is_waiting) continue;
    const std::uint32_t task = order_.queued[queue.next];
    if (!hangs_on(plan_, task, choice)) continue;
    grants_.withdraw(static_cast<TaskId>(task));
    again(task);
  }
}

void Dispatcher::end(std::uint32_t task) {
  const bool has_run = timeline_.end[task] != passing;
  timeline_.end[task] = now_;
  ++ended_count_;
  if (has_run) end_effects(task);
  --queue_of(task).running;
  offer(static_cast<std::uint32_t>(index(plan_.tasks[task].lane)));
  for (const std::uint32_t after : order_.successors(task)) {
    if (--order_.pending[after] > 0) continue;
    const Order::Queue& queue = queue_of(after);
    if (queue.next < queue.end && order_.queued[queue.next] == after) {
      offer(static_cast<std::uint32_t>(index(plan_.tasks[after].lane)));
    }
  }
}

void Dispatcher::end_effects(std::uint32_t task) {
  worker_.end(static_cast<TaskId>(task));
  for (const Effect& e : plan_.effects(static_cast<TaskId>(task))) {
    if (e.kind != Effect::Kind::free || !e.when.holds(outcomes_)) continue;
    worker_.free(static_cast<BufferId>(e.target));
    ledger_.free(static_cast<BufferId>(e.target));
  }
  grants_.give_back(static_cast<TaskId>(task));
  offer_again();
}

}  // namespace tidegate
