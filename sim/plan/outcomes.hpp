#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/plan.hpp"

/// Which outcomes of a plan's choices can occur together.
///
/// Choices are taken as independent, but for two things that need no clock to be known: a choice
/// whose task is skipped is no; and of choices that one task takes on the same watched task, those
/// of one rule agree, and what has not started has not ended.
namespace tidegate {

/// When an effect of a task happens: both hold. In the order of codes, equal ones once.
struct Condition {
  When first, second;
  Condition() = default;
  Condition(When task, When effect) : first(task), second(effect) {
    if (first.code > second.code) std::swap(first, second);
    if (first == second) (first.code < 0 ? second : first) = {};
  }
  bool holds(std::span<const std::uint8_t> outcomes) const {
    return first.holds(outcomes) && second.holds(outcomes);
  }
};
/// " when choice 3 is no and choice 4 is yes"; nothing for always.
std::string text_of(std::span<const When> conditions);

class Outcomes {
 public:
  /// Of the plan's choices, all of which are decided by tasks of the plan. It must outlive this.
  explicit Outcomes(const Plan& plan);

  /// The tasks that decide a choice; of more than two, the first two.
  struct Deciders {
    TaskId first = Choice::nobody, second = Choice::nobody;
  };
  const Deciders& deciders(ChoiceId choice) const { return deciders_[index(choice)]; }

  /// Calls visit(outcomes) for each combination of the outcomes on which the conditions hang, until
  /// it says false. outcomes[c] is only of use for those choices. False when these are more than
  /// most_choices: then there was no call.
  using Visit = std::function<bool(std::span<const std::uint8_t>)>;
  bool each(std::span<const Condition> conditions, const Visit& visit);
  static constexpr std::size_t most_choices = 10;
  /// The combination of the call in progress, as text_of says.
  std::string text() const;

 private:
  const Plan& plan_;
  std::vector<Deciders> deciders_;
  std::vector<std::uint8_t> outcomes_;
  std::vector<ChoiceId> asked_;

  void ask(When when);
  bool is_possible(ChoiceId choice) const;
  bool agree(ChoiceId a, ChoiceId b) const;
};

}  // namespace tidegate
