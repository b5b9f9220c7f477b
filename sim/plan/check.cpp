#include "sim/plan/check.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/core.h>

#include "sim/plan/outcomes.hpp"
#include "sim/plan/precedence.hpp"

namespace tidegate {
namespace {

using Kind = Effect::Kind;

class Check {
 public:
  explicit Check(const Plan& plan) : plan_(plan) {}

  std::vector<std::string> faults() {
    if (check_references() && check_deciders()) {
      check_cycles();
      check_conditions();
      check_buffers();
      check_tokens();
      check_locks();
      check_marks();
    }
    return std::move(faults_);
  }

 private:
  /// An effect that allocates or frees a buffer.
  struct Use {
    TaskId task{};
    Condition when;
    bool frees = false;
  };
  /// When a condition is asked for: when the task has its turn, at its start, at its end.
  enum class Moment { turn, start, end };

  const Plan& plan_;
  std::optional<Outcomes> outcomes_;
  std::optional<Precedence> order_;  // if acyclic
  std::vector<std::string> faults_;

  std::string name(TaskId t) const { return fmt::format("task {} '{}'", index(t), plan_.label(t)); }
  template <class... Args>
  void fault(fmt::format_string<Args...> text, Args&&... args) {
    faults_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  template <class Visit>
  void each_effect(Visit&& visit) const {
    for (std::uint32_t t = 0; t < plan_.size(); ++t) {
      for (const Effect& effect : plan_.effects(TaskId{t})) visit(TaskId{t}, effect);
    }
  }

  std::size_t targets(Kind kind) const {
    switch (kind) {
      case Kind::allocate:
      case Kind::free:
        return plan_.buffers.size();
      case Kind::acquire:
      case Kind::release:
        return plan_.tokens.size();
      case Kind::lock:
        return plan_.locks.size();
      case Kind::decide:
        return plan_.choices.size();
    }
    return 0;
  }
  bool has_choice(When when) const {
    return when.is_always() || index(when.choice()) < plan_.choices.size();
  }
  // The other checks follow these references.
  bool check_references() {
    for (std::uint32_t t = 0; t < plan_.size(); ++t) {
      const Task& task = plan_.tasks[t];
      const bool has_name = index(task.name) < plan_.names.size();
      if (!has_name) fault("task {} has no name", t);
      if (index(task.work) >= plan_.works.size()) fault("task {} has no work", t);
      if (index(task.lane) >= plan_.lanes.size()) fault("task {} has no lane", t);
      if (!has_choice(task.when)) fault("task {} hangs on a choice that does not exist", t);
      for (const TaskId before : plan_.after(TaskId{t})) {
        if (index(before) >= plan_.size())
          fault("task {} comes after a task that does not exist", t);
      }
    }
    each_effect([&](TaskId t, const Effect& e) {
      if (e.target >= targets(e.kind) || !has_choice(e.when)) {
        fault("task {} names a buffer, tokens, a lock or a choice that does not exist", index(t));
      }
    });
    for (const Mark& mark : plan_.marks) {
      if (index(mark.task) >= plan_.size())
        fault("a mark names task {}, which does not exist", index(mark.task));
    }
    for (const Buffer& b : plan_.buffers) {
      if (index(b.pool) >= plan_.pools.size() || index(b.owner) >= plan_.owners.size()) {
        fault("a buffer has no pool or no owner");
      }
    }
    for (std::size_t c = 0; c < plan_.choices.size(); ++c) {
      if (index(plan_.choices[c].watched) >= plan_.size()) fault("choice {} watches no task", c);
    }
    return faults_.empty();
  }

  bool check_deciders() {
    outcomes_.emplace(plan_);
    for (std::uint32_t c = 0; c < plan_.choices.size(); ++c) {
      const auto [first, second] = outcomes_->deciders(ChoiceId{c});
      if (first == Choice::nobody) {
        fault("choice {} is never decided", c);
      } else if (second != Choice::nobody) {
        fault("{} decides choice {}, as did {}", name(second), c, name(first));
      } else if (first == plan_.choices[c].watched) {
        fault("{} decides choice {}, which watches it", name(first), c);
      }
    }
    return faults_.empty();
  }

  void check_cycles() {
    order_.emplace(plan_);
    if (!order_->cycle()) return;
    fault("{} waits for {}, which waits for it, by dependencies and the order of lanes",
          name(order_->cycle()->first), name(order_->cycle()->second));
    order_.reset();
  }

  void check_conditions() {
    for (std::uint32_t t = 0; t < plan_.size(); ++t) {
      check_settled(TaskId{t}, plan_.tasks[t].when, Moment::turn);
    }
    each_effect([&](TaskId t, const Effect& e) {
      if (e.when.is_always()) return;
      if (e.kind == Kind::lock || e.kind == Kind::decide) {
        fault("{} takes a lock or a choice under a condition", name(t));
      }
      const bool is_end = e.kind == Kind::free || e.kind == Kind::release;
      check_settled(t, e.when,
                    is_end                    ? Moment::end
                    : e.kind == Kind::acquire ? Moment::turn
                                              : Moment::start);
    });
  }
  void check_settled(TaskId t, When when, Moment moment) {
    if (when.is_always() || !order_ || is_settled(t, when.choice(), moment)) return;
    fault("{} hangs on choice {} without waiting for {}, which decides it", name(t),
          index(when.choice()), name(outcomes_->deciders(when.choice()).first));
  }
  // Whoever asks before the choice is taken must make its outcome the no that it is told.
  bool is_settled(TaskId t, ChoiceId c, Moment moment) {
    const Choice& choice = plan_.choices[index(c)];
    const TaskId decider = outcomes_->deciders(c).first;
    if (t == decider) return moment != Moment::turn;
    const bool is_over = moment == Moment::end || choice.rule == Choice::Rule::unstarted;
    if (t == choice.watched && is_over) return true;
    const auto after = plan_.after(t);
    return std::ranges::find(after, choice.watched) != after.end() ||
           order_->comes_after(t, decider);
  }

  void check_buffers() {
    std::vector<std::uint32_t> first(plan_.buffers.size() + 1);
    const auto moves = [](const Effect& e) {
      return e.kind == Kind::allocate || e.kind == Kind::free;
    };
    each_effect([&](TaskId, const Effect& e) {
      if (moves(e)) ++first[e.target + 1];
    });
    for (std::size_t b = 1; b < first.size(); ++b) first[b] += first[b - 1];
    std::vector<Use> uses(first.back());
    std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
    each_effect([&](TaskId t, const Effect& e) {
      if (!moves(e)) return;
      uses[next[e.target]++] = {t, {plan_.task(t).when, e.when}, e.kind == Kind::free};
    });
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      check_buffer(b, std::span(uses).subspan(first[b], first[b + 1] - first[b]));
    }
  }
  void check_buffer(std::size_t buffer, std::span<const Use> uses) {
    std::vector<Condition> conditions;
    for (const Use& use : uses) conditions.push_back(use.when);
    if (uses.empty()) fault("buffer {} is never allocated", buffer);
    const std::size_t known = faults_.size();
    const bool is_checked = outcomes_->each(conditions, [&](std::span<const std::uint8_t> now) {
      check_life(buffer, uses, now);
      return faults_.size() == known;
    });
    if (is_checked) return;
    fault("buffer {} hangs on more than {} choices", buffer, Outcomes::most_choices);
  }
  // With one combination of outcomes.
  void check_life(std::size_t buffer, std::span<const Use> uses,
                  std::span<const std::uint8_t> outcomes) {
    std::optional<TaskId> allocated, freed;
    for (const Use& use : uses) {
      if (!use.when.holds(outcomes)) continue;
      std::optional<TaskId>& once = use.frees ? freed : allocated;
      if (once) {
        fault("{} {} buffer {}, as did {}{}", name(use.task), use.frees ? "frees" : "allocates",
              buffer, name(*once), outcomes_->text());
      }
      once = use.task;
    }
    if (allocated && !freed) {
      fault("{} allocates buffer {}, which is never freed{}", name(*allocated), buffer,
            outcomes_->text());
    } else if (freed && !allocated) {
      fault("{} frees buffer {}, which is never allocated{}", name(*freed), buffer,
            outcomes_->text());
    } else if (freed && order_ && !order_->comes_after(*freed, *allocated)) {
      fault("{} frees buffer {} without waiting for its allocation by {}", name(*freed), buffer,
            name(*allocated));
    }
  }

  // Tokens that one task takes under several conditions are counted as if it took them all.
  void check_tokens() {
    struct Count {
      std::int64_t taken = 0, given = 0;
    };
    std::map<std::tuple<std::uint32_t, std::int32_t, std::int32_t>, Count> counts;
    std::map<std::pair<TaskId, std::uint32_t>, std::int64_t> at_once;
    each_effect([&](TaskId t, const Effect& e) {
      if (e.kind != Kind::acquire && e.kind != Kind::release) return;
      if (e.count <= 0) fault("{} takes or gives back {} tokens", name(t), e.count);
      const Condition when(plan_.task(t).when, e.when);
      Count& count = counts[{e.target, when.first.code, when.second.code}];
      (e.kind == Kind::acquire ? count.taken : count.given) += e.count;
      if (e.kind == Kind::acquire) at_once[{t, e.target}] += e.count;
    });
    for (const auto& [key, count] : at_once) {
      const Tokens& tokens = plan_.tokens[key.second];
      if (count > tokens.count) {
        fault("{} takes {} tokens of {}, of which {} exist", name(key.first), count, tokens.name,
              tokens.count);
      }
    }
    for (const auto& [key, count] : counts) {
      if (count.taken == count.given) continue;
      const When when[] = {{std::get<1>(key)}, {std::get<2>(key)}};
      fault("tokens of {} are taken {} times and given back {} times{}",
            plan_.tokens[std::get<0>(key)].name, count.taken, count.given, text_of(when));
    }
  }

  void check_locks() {
    for (std::uint32_t t = 0; t < plan_.size(); ++t) {
      const auto is_lock = [](const Effect& e) { return e.kind == Kind::lock; };
      if (std::ranges::count_if(plan_.effects(TaskId{t}), is_lock) > 1) {
        fault("{} holds two locks", name(TaskId{t}));
      }
    }
  }

  void check_marks() {
    if (plan_.marks.empty()) return;
    std::map<std::pair<std::int32_t, std::int32_t>, std::string> phases;
    for (std::int32_t i = 0; i < plan_.iterations; ++i) {
      for (std::int32_t r = 0; r < plan_.ranks; ++r) phases[{i, r}];
    }
    for (const Mark& mark : plan_.marks) {
      phases[{mark.iteration, mark.rank}] += std::string(" ") + name_of(mark.phase);
    }
    const std::string& expected = phases.begin()->second;
    for (const auto& [key, seen] : phases) {
      if (seen == expected) continue;
      fault("iteration {} of rank {} marks the phases{}, and the first marks{}", key.first,
            key.second, seen.empty() ? " none" : seen, expected.empty() ? " none" : expected);
    }
  }
};

}  // namespace

std::vector<std::string> faults(const Plan& plan) { return Check(plan).faults(); }

}  // namespace tidegate
