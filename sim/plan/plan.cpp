#include "sim/plan/plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

template <class Id, class List>
Id next_id(const List& list) {
  using Number = std::underlying_type_t<Id>;
  ensure(list.size() < std::numeric_limits<Number>::max(), "a plan's table is full");
  return static_cast<Id>(static_cast<Number>(list.size()));
}

}  // namespace

const char* name_of(Phase phase) {
  constexpr std::array names = {"forward", "backward", "update", "other"};
  return names.at(static_cast<std::size_t>(phase));
}

Effect allocate(BufferId buffer, When when) {
  return {static_cast<std::uint32_t>(buffer), 0, when, Effect::Kind::allocate};
}
Effect free(BufferId buffer, When when) {
  return {static_cast<std::uint32_t>(buffer), 0, when, Effect::Kind::free};
}
Effect acquire(TokenId tokens, std::int32_t count, When when) {
  return {static_cast<std::uint32_t>(tokens), count, when, Effect::Kind::acquire};
}
Effect release(TokenId tokens, std::int32_t count, When when) {
  return {static_cast<std::uint32_t>(tokens), count, when, Effect::Kind::release};
}
Effect hold(LockId lock) { return {static_cast<std::uint32_t>(lock), 0, {}, Effect::Kind::lock}; }
Effect decide(ChoiceId choice) {
  return {static_cast<std::uint32_t>(choice), 0, {}, Effect::Kind::decide};
}

std::string Plan::label(TaskId t) const {
  const Task& x = task(t);
  const std::string& name = names[index(x.name)];
  return x.item < 0 ? name : name + " " + std::to_string(x.item);
}

LaneId PlanBuilder::lane(std::string name, std::uint16_t rank, std::uint16_t width) {
  ensure(width > 0, "a lane has room for one task at least");
  const auto id = next_id<LaneId>(plan_.lanes);
  plan_.lanes.push_back({std::move(name), rank, width});
  return id;
}

PoolId PlanBuilder::pool(std::string name, Place place, Bytes capacity) {
  const auto id = next_id<PoolId>(plan_.pools);
  plan_.pools.push_back({std::move(name), place, capacity});
  return id;
}

OwnerId PlanBuilder::owner(const std::string& name) {
  const auto [entry, is_new] = known_owners_.try_emplace(name, next_id<OwnerId>(plan_.owners));
  if (is_new) plan_.owners.push_back(name);
  return entry->second;
}

TokenId PlanBuilder::tokens(std::string name, std::int32_t count) {
  const auto id = next_id<TokenId>(plan_.tokens);
  plan_.tokens.push_back({std::move(name), count});
  return id;
}

LockId PlanBuilder::lock(std::string name) {
  const auto id = next_id<LockId>(plan_.locks);
  plan_.locks.push_back({std::move(name)});
  return id;
}

BufferId PlanBuilder::buffer(PoolId pool, OwnerId owner, Bytes bytes) {
  ensure(bytes.value() >= 0, "a buffer has a size");
  const auto id = next_id<BufferId>(plan_.buffers);
  plan_.buffers.push_back({static_cast<std::int64_t>(std::ceil(bytes.value())), pool, owner});
  return id;
}

WorkId PlanBuilder::work(const Work& work) {
  const std::size_t hash = hash_of(work);
  const auto is_same = [&](std::uint32_t known) { return plan_.works[known] == work; };
  if (const auto known = known_works_.find(hash, is_same)) return static_cast<WorkId>(*known);
  const auto id = next_id<WorkId>(plan_.works);
  plan_.works.push_back(work);
  known_works_.add(hash, static_cast<std::uint32_t>(id));
  return id;
}

ChoiceId PlanBuilder::choice(Choice::Rule rule) {
  ensure(plan_.choices.size() < std::numeric_limits<std::int32_t>::max(), "a plan's table is full");
  plan_.choices.push_back({Choice::nobody, rule});
  return static_cast<ChoiceId>(plan_.choices.size() - 1);
}

void PlanBuilder::watch(ChoiceId choice, TaskId watched) {
  ensure(index(choice) < plan_.choices.size() && index(watched) < plan_.size(),
         "a choice of the plan watches a task that was added before");
  plan_.choices[index(choice)].watched = watched;
}

void PlanBuilder::expect(std::size_t times) {
  plan_.tasks.reserve(times * plan_.tasks.size());
  plan_.after_list.reserve(times * plan_.after_list.size());
  plan_.effect_list.reserve(times * plan_.effect_list.size());
  plan_.buffers.reserve(times * plan_.buffers.size());
}

// Names are literals; looking them up by address first spares hashing text for every task.
NameId PlanBuilder::name_of(const char* literal) {
  const auto address = reinterpret_cast<std::size_t>(literal);
  const auto is_same = [](std::uint32_t) { return true; };
  if (const auto known = known_literals_.find(address, is_same)) return static_cast<NameId>(*known);
  const auto [entry, is_new] = known_names_.try_emplace(literal, next_id<NameId>(plan_.names));
  if (is_new) plan_.names.emplace_back(literal);
  known_literals_.add(address, static_cast<std::uint32_t>(entry->second));
  return entry->second;
}

TaskId PlanBuilder::add(const NewTask& task, WorkId work, std::span<const TaskId> after,
                        std::span<const Effect> effects) {
  const auto id = next_id<TaskId>(plan_.tasks);
  const NameId name = name_of(task.name);
  plan_.tasks.push_back({.work = work,
                         .first_after = static_cast<std::uint32_t>(plan_.after_list.size()),
                         .first_effect = static_cast<std::uint32_t>(plan_.effect_list.size()),
                         .item = task.item,
                         .lane = task.lane,
                         .name = name,
                         .rank = task.rank,
                         .iteration = iteration_,
                         .phase = phase_,
                         .when = task.when});
  // Each predecessor once.
  const std::size_t first = plan_.after_list.size();
  plan_.after_list.resize(first + after.size());
  TaskId* const row = plan_.after_list.data() + first;
  std::size_t count = 0;
  for (const TaskId before : after) {
    ensure(before < id, "a task comes after tasks that were added before it");
    if (std::find(row, row + count, before) == row + count) row[count++] = before;
  }
  plan_.after_list.resize(first + count);
  plan_.effect_list.insert(plan_.effect_list.end(), effects.begin(), effects.end());
  return id;
}

TaskId PlanBuilder::add(const NewTask& task, const Work& w, std::span<const TaskId> after,
                        std::span<const Effect> effects) {
  return add(task, work(w), after, effects);
}

TaskId PlanBuilder::join(const NewTask& task, std::span<const TaskId> after,
                         std::span<const Effect> effects) {
  return add(task, Work(Delay{}), after, effects);
}

ContentId PlanBuilder::content(const Content& content) {
  const std::size_t hash = hash_of(content);
  const auto is_same = [&](std::uint32_t known) {
    return plan_.meaning.content(static_cast<ContentId>(known)) == content;
  };
  if (const auto known = known_contents_.find(hash, is_same)) return static_cast<ContentId>(*known);
  const auto id = next_id<ContentId>(plan_.meaning.contents);
  plan_.meaning.contents.push_back(content);
  known_contents_.add(hash, static_cast<std::uint32_t>(id));
  return id;
}

void PlanBuilder::mean(const NewDeed& deed, std::span<const Access> accesses) {
  ensure(index(deed.task) < plan_.size(), "a deed belongs to a task that was added before");
  Meaning& meaning = plan_.meaning;
  meaning.deeds.push_back({.task = deed.task,
                           .first_access = static_cast<std::uint32_t>(meaning.accesses.size()),
                           .access_count = static_cast<std::uint32_t>(accesses.size()),
                           .layer = deed.layer,
                           .op = deed.op,
                           .micro_batch = deed.micro_batch,
                           .verb = deed.verb});
  meaning.accesses.insert(meaning.accesses.end(), accesses.begin(), accesses.end());
}

void PlanBuilder::mark(TaskId task, std::uint16_t rank) {
  plan_.marks.push_back({task, iteration_, rank, phase_});
}

Plan PlanBuilder::finish(std::int32_t iterations, std::int32_t ranks) {
  plan_.iterations = iterations;
  plan_.ranks = ranks;
  if (!plan_.meaning.deeds.empty()) plan_.meaning.put_in_order(plan_.size());
  return std::move(plan_);
}

}  // namespace tidegate
