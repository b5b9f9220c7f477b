#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/base/units.hpp"
#include "models/work.hpp"
#include "sim/plan/ids.hpp"
#include "sim/plan/known_ids.hpp"
#include "sim/plan/meaning.hpp"

/// A plan: the task graph of one or more training iterations of one node, as data.
///
/// A task does one work on one lane after its predecessors. Its start allocates buffers, takes
/// tokens and a lock; its end frees buffers and gives tokens back. Nothing here knows a device, a
/// rate or a clock: the simulator prices the works, the rig runs them.
///
/// A task starts when all of these hold, and as early as they do:
///   - every task in after(t) has ended;
///   - every earlier task of its lane has started, and fewer than `width` of them run;
///   - its tokens are available, and its lock is free or held by the same rank.
/// A task begins to wait for tokens and its lock when the rest holds. It takes all of them at once.
/// Waiting tasks get them in the order in which they began to wait, ties by task number; a task
/// that waits for something else holds up nobody.
///
/// Some decisions depend on time. A plan writes them as choices, by a rule that every executor can
/// follow, and tasks and effects may hang on the outcome. A task whose `when` does not hold is
/// skipped: once its predecessors have ended and its lane gives it its turn, it passes at once (its
/// start is its end), without work, tokens, lock or effects. A task that waits for tokens or its
/// lock has not started: when a choice turns against it meanwhile, it passes at that moment.
///
/// Works are kept once (`works`); a task is 32 bytes plus its predecessors and effects.
namespace tidegate {

enum class Phase : std::uint8_t { forward, backward, update, other };
constexpr std::size_t phase_count = 4;
const char* name_of(Phase phase);

/// An in-order queue: a GPU stream, a copy engine, an I/O worker pool, a CPU thread.
struct Lane {
  std::string name;
  std::uint16_t rank = 0;
  std::uint16_t width = 1;
};
/// A memory with a capacity. Filling it beyond is not an error: it is the answer "does not fit".
struct Pool {
  std::string name;
  Place place;
  Bytes capacity;
};
/// A number of interchangeable buffers or slots.
struct Tokens {
  std::string name;
  std::int32_t count = 1;
};
struct Lock {
  std::string name;
};
/// Bytes with one owner and one lifetime: allocated by the start of one task, freed by the end of
/// one.
struct Buffer {
  std::int64_t bytes = 0;
  PoolId pool{};
  OwnerId owner{};
};

/// A yes-or-no decision that depends on time: whether a task is over yet. It is taken once, when
/// the task starts that has the effect `decide`: yes when `watched` has not ended by then
/// (unfinished), or has not even started (unstarted); a skipped task starts and ends when it
/// passes. The ends of an instant come before its starts, so a task that ends in that very instant
/// has ended. Before it is taken, and if it never is, the outcome is no.
struct Choice {
  enum class Rule : std::uint8_t { unfinished, unstarted };
  static constexpr TaskId nobody{std::numeric_limits<std::uint32_t>::max()};
  TaskId watched = nobody;
  Rule rule = Rule::unfinished;
};
struct Effect {
  enum class Kind : std::uint8_t { allocate, free, acquire, release, lock, decide };
  std::uint32_t target = 0;  ///< BufferId, TokenId, LockId or ChoiceId
  std::int32_t count = 0;    ///< tokens
  When when;
  Kind kind = Kind::allocate;
  bool operator==(const Effect&) const = default;
};
/// decide, allocate, acquire and lock happen at the start of the task, free and release at its end;
/// a lock is held from start to end. An effect happens if its condition holds at its own moment. Of
/// the effects of a start, decisions come first, so that the others can use their outcome; but what
/// a task waits for before its start, tokens, cannot.
Effect allocate(BufferId buffer, When when = {});
Effect free(BufferId buffer, When when = {});
Effect acquire(TokenId tokens, std::int32_t count = 1, When when = {});
Effect release(TokenId tokens, std::int32_t count = 1, When when = {});
Effect hold(LockId lock);
Effect decide(ChoiceId choice);

struct Task {
  WorkId work{};
  std::uint32_t first_after = 0;
  std::uint32_t first_effect = 0;
  std::int32_t item =
      -1;  ///< number shown with the name: layer, sub-group, micro-step; -1 for none
  LaneId lane{};
  NameId name{};
  std::uint16_t rank = 0;
  std::uint16_t iteration = 0;
  Phase phase = Phase::other;
  When when;
};

/// End of a phase of an iteration on a rank: the task whose end is that moment.
struct Mark {
  TaskId task{};
  std::uint16_t iteration = 0;
  std::uint16_t rank = 0;
  Phase phase = Phase::other;
};

struct Plan {
  std::vector<Work> works;
  std::vector<Lane> lanes;
  std::vector<Pool> pools;
  std::vector<std::string> owners;
  std::vector<Tokens> tokens;
  std::vector<Lock> locks;
  std::vector<Buffer> buffers;
  std::vector<Choice> choices;
  std::vector<std::string> names;
  std::vector<Task> tasks;
  std::vector<TaskId> after_list;   ///< predecessors of all tasks, row by row
  std::vector<Effect> effect_list;  ///< effects of all tasks, row by row
  std::vector<Mark> marks;          ///< phases of an iteration in order, per rank
  Meaning meaning;                  ///< empty unless it was asked for; no part of a dump
  std::int32_t iterations = 1;
  std::int32_t ranks = 1;

  std::size_t size() const { return tasks.size(); }
  const Task& task(TaskId t) const { return tasks[index(t)]; }
  const Work& work(TaskId t) const { return works[index(task(t).work)]; }
  std::span<const TaskId> after(TaskId t) const {
    return row(after_list, &Task::first_after, index(t));
  }
  std::span<const Effect> effects(TaskId t) const {
    return row(effect_list, &Task::first_effect, index(t));
  }
  /// "read sub-group 17"
  std::string label(TaskId t) const;

 private:
  template <class T>
  std::span<const T> row(const std::vector<T>& list, std::uint32_t Task::* first,
                         std::size_t i) const {
    const std::size_t from = tasks[i].*first;
    const std::size_t to = i + 1 < tasks.size() ? tasks[i + 1].*first : list.size();
    return {list.data() + from, to - from};
  }
};

/// Builds a plan task by task. Tasks are added in an order in which predecessors come first, so a
/// built plan is acyclic, its lanes included.
class PlanBuilder {
 public:
  struct NewTask {
    const char* name = "";
    LaneId lane{};
    std::uint16_t rank = 0;
    std::int32_t item = -1;
    When when = {};
  };

  LaneId lane(std::string name, std::uint16_t rank, std::uint16_t width = 1);
  PoolId pool(std::string name, Place place, Bytes capacity);
  OwnerId owner(const std::string& name);
  TokenId tokens(std::string name, std::int32_t count);
  LockId lock(std::string name);
  BufferId buffer(PoolId pool, OwnerId owner, Bytes bytes);
  const Buffer& buffer_of(BufferId buffer) const { return plan_.buffers[index(buffer)]; }
  WorkId work(const Work& work);
  /// A choice is made first and told later what it watches: a task that can be cancelled hangs on a
  /// choice that watches that same task.
  ChoiceId choice(Choice::Rule rule);
  void watch(ChoiceId choice, TaskId watched);

  /// Iteration and phase of the tasks added from now on.
  void enter(std::uint16_t iteration, Phase phase) { iteration_ = iteration, phase_ = phase; }
  std::uint16_t iteration() const { return iteration_; }
  /// The finished plan will be about `times` as long as it is now.
  void expect(std::size_t times);

  TaskId add(const NewTask& task, WorkId work, std::span<const TaskId> after,
             std::span<const Effect> effects = {});
  TaskId add(const NewTask& task, const Work& work, std::span<const TaskId> after,
             std::span<const Effect> effects = {});
  /// A task without work: a moment that others can wait for.
  TaskId join(const NewTask& task, std::span<const TaskId> after,
              std::span<const Effect> effects = {});
  ContentId content(const Content& content);
  /// The next thing that a task added before does.
  struct NewDeed {
    TaskId task{};
    Deed::Verb verb = Deed::Verb::move;
    std::int32_t layer = -1, op = -1, micro_batch = -1;
  };
  void mean(const NewDeed& deed, std::span<const Access> accesses);
  void mean(const Update& update) { plan_.meaning.update = update; }
  /// The data-parallel number of each rank.
  void mean(std::vector<std::uint16_t> batches) { plan_.meaning.batches = std::move(batches); }
  /// Says that the current phase of the current iteration ends on `rank` with `task`.
  void mark(TaskId task, std::uint16_t rank);

  Plan finish(std::int32_t iterations, std::int32_t ranks);

 private:
  Plan plan_;
  KnownIds known_works_, known_contents_, known_literals_;
  std::unordered_map<std::string, NameId> known_names_;
  std::unordered_map<std::string, OwnerId> known_owners_;
  std::uint16_t iteration_ = 0;
  Phase phase_ = Phase::other;

  NameId name_of(const char* literal);
};

/// A line per task, exact, and its inverse. Throws InputError with the line on other text.
std::string dump(const Plan& plan);
Plan read_plan(const std::string& text, const std::string& name);

}  // namespace tidegate
