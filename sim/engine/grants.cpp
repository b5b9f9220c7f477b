#include "sim/engine/grants.hpp"

#include <algorithm>

namespace tidegate {
namespace {

bool is_need(const Effect& effect) {
  return effect.kind == Effect::Kind::acquire || effect.kind == Effect::Kind::lock;
}

// A lock goes back at the end of the task that took it.
bool is_return(const Effect& effect) {
  return effect.kind == Effect::Kind::release || effect.kind == Effect::Kind::lock;
}

}  // namespace

Grants::Grants(const Plan& plan, const std::vector<std::uint8_t>& outcomes)
    : plan_(plan), outcomes_(outcomes), locks_(plan.locks.size()), waiters_(plan.lanes.size()) {
  for (const Tokens& tokens : plan.tokens) pools_.push_back({tokens.count, {}});
  if (!plan.tokens.empty() || !plan.locks.empty()) look_through();
  places_.resize(waiters_.size() * needs_);
  again_.reserve(waiters_.size());
}

void Grants::look_through() {
  parts_.resize(plan_.size());
  for (std::size_t t = 0; t < plan_.size(); ++t) {
    std::uint32_t needs = 0;
    for (const Effect& effect : plan_.effects(static_cast<TaskId>(t))) {
      if (is_need(effect)) ++needs, parts_[t] |= asks;
      if (is_return(effect)) parts_[t] |= gives;
    }
    needs_ = std::max(needs_, needs);
  }
}

bool Grants::take_needs(TaskId task, Instant began) {
  const std::uint16_t rank = plan_.task(task).rank;
  const auto lane = static_cast<std::uint32_t>(index(plan_.task(task).lane));
  const bool is_waiting = waiters_[lane].is_waiting;
  std::uint32_t taken = 0;
  for (const Effect& need : plan_.effects(task)) {
    if (!asks_for(need)) continue;
    if (!may_take(need, rank, is_waiting ? lane * needs_ + taken : none)) {
      take_back(task, taken);
      if (!is_waiting) enqueue(task, began);
      return false;
    }
    take_one(need, rank);
    ++taken;
  }
  if (is_waiting) leave(task);
  return true;
}

void Grants::give_back_needs(TaskId task) {
  for (const Effect& effect : plan_.effects(task)) {
    if (!is_return(effect)) continue;
    if (!effect.when.holds(outcomes_)) continue;
    give_one(effect);
    retry(effect);
  }
}

void Grants::clear_all_again() {
  for (const TaskId task : again_) waiters_[index(plan_.task(task).lane)].is_again = false;
  again_.clear();
}

bool Grants::asks_for(const Effect& effect) const {
  return is_need(effect) && effect.when.holds(outcomes_);
}

Grants::Queue& Grants::queue_of(const Effect& need) {
  return need.kind == Effect::Kind::lock ? locks_[need.target].queue : pools_[need.target].queue;
}

bool Grants::may_take(const Effect& need, std::uint16_t rank, std::uint32_t place) const {
  if (need.kind == Effect::Kind::lock) {
    return locks_[need.target].holders == 0 || locks_[need.target].rank == rank;
  }
  const TokenPool& pool = pools_[need.target];
  return need.count <= pool.available && !is_blocked(pool, place);
}

// An earlier waiter finds too few.
bool Grants::is_blocked(const TokenPool& pool, std::uint32_t place) const {
  for (std::uint32_t p = pool.queue.first; p != place && p != none; p = places_[p].behind) {
    const bool is_own = place != none && p / needs_ == place / needs_;
    if (!is_own && places_[p].count > pool.available) return true;
  }
  return false;
}

void Grants::take_one(const Effect& need, std::uint16_t rank) {
  if (need.kind == Effect::Kind::lock) {
    ++locks_[need.target].holders;
    locks_[need.target].rank = rank;
  } else {
    pools_[need.target].available -= need.count;
  }
}

void Grants::give_one(const Effect& need) {
  if (need.kind == Effect::Kind::lock) {
    LockState& lock = locks_[need.target];
    if (--lock.holders == 0) lock.rank = -1;
  } else {
    pools_[need.target].available += need.count;
  }
}

void Grants::take_back(TaskId task, std::uint32_t needs_taken) {
  for (const Effect& need : plan_.effects(task)) {
    if (needs_taken == 0) return;
    if (!asks_for(need)) continue;
    give_one(need);
    --needs_taken;
  }
}

void Grants::enqueue(TaskId task, Instant began) {
  const auto lane = static_cast<std::uint32_t>(index(plan_.task(task).lane));
  waiters_[lane] = {task, began, true, waiters_[lane].is_again};
  std::uint32_t place = lane * needs_;
  for (const Effect& need : plan_.effects(task)) {
    if (!asks_for(need)) continue;
    places_[place].count = need.count;
    link(queue_of(need), place++);
  }
}

// Those behind may go on now, and those of the rank that got the lock may join.
void Grants::leave(TaskId task) {
  const auto lane = static_cast<std::uint32_t>(index(plan_.task(task).lane));
  waiters_[lane].is_waiting = false;
  std::uint32_t place = lane * needs_;
  for (const Effect& need : plan_.effects(task)) {
    if (!asks_for(need)) continue;
    unlink(queue_of(need), place++);
    retry(need);
  }
}

void Grants::withdraw(TaskId task) {
  if (waiters_[index(plan_.task(task).lane)].is_waiting) leave(task);
}

bool Grants::is_later(std::uint32_t a, std::uint32_t b) const {
  const Waiter &x = waiter_at(a), &y = waiter_at(b);
  return x.began != y.began ? x.began > y.began : x.task > y.task;
}

void Grants::link(Queue& queue, std::uint32_t place) {
  std::uint32_t before = queue.last, behind = none;
  while (before != none && is_later(before, place)) {
    behind = before;
    before = places_[before].before;
  }
  places_[place].before = before;
  places_[place].behind = behind;
  (before == none ? queue.first : places_[before].behind) = place;
  (behind == none ? queue.last : places_[behind].before) = place;
}

void Grants::unlink(Queue& queue, std::uint32_t place) {
  const auto [before, behind, count] = places_[place];
  (before == none ? queue.first : places_[before].behind) = behind;
  (behind == none ? queue.last : places_[behind].before) = before;
}

void Grants::retry(const Effect& need) {
  const bool is_lock = need.kind == Effect::Kind::lock;
  for (std::uint32_t p = queue_of(need).first; p != none; p = places_[p].behind) {
    Waiter& waiter = waiter_at(p);
    if (is_lock) {
      const LockState& lock = locks_[need.target];
      if (lock.holders == 0 || lock.rank == plan_.task(waiter.task).rank) retry(waiter);
    } else {
      if (places_[p].count > pools_[need.target].available) return;
      retry(waiter);
    }
  }
}

void Grants::retry(Waiter& waiter) {
  if (waiter.is_again) return;
  waiter.is_again = true;
  again_.push_back(waiter.task);
}

}  // namespace tidegate
