#include "sim/plan/outcomes.hpp"

#include <fmt/core.h>

namespace tidegate {

std::string text_of(std::span<const When> conditions) {
  std::string text;
  for (const When when : conditions) {
    if (when.is_always()) continue;
    text += fmt::format("{} choice {} is {}", text.empty() ? " when" : " and", index(when.choice()),
                        when.wants_yes() ? "yes" : "no");
  }
  return text;
}

Outcomes::Outcomes(const Plan& plan)
    : plan_(plan), deciders_(plan.choices.size()), outcomes_(plan.choices.size()) {
  if (deciders_.empty()) return;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    for (const Effect& e : plan.effects(TaskId{t})) {
      if (e.kind != Effect::Kind::decide) continue;
      Deciders& d = deciders_[e.target];
      if (d.first == Choice::nobody) {
        d.first = TaskId{t};
      } else if (d.second == Choice::nobody) {
        d.second = TaskId{t};
      }
    }
  }
}

// Whether a deciding task runs may itself hang on choices.
void Outcomes::ask(When when) {
  while (!when.is_always() && std::ranges::find(asked_, when.choice()) == asked_.end()) {
    asked_.push_back(when.choice());
    when = plan_.task(deciders(when.choice()).first).when;
  }
}

bool Outcomes::each(std::span<const Condition> conditions, const Visit& visit) {
  asked_.clear();
  for (const Condition& c : conditions) ask(c.first), ask(c.second);
  if (asked_.size() > most_choices) return false;
  bool goes_on = true;
  for (std::uint32_t bits = 0; goes_on && bits < 1u << asked_.size(); ++bits) {
    for (std::size_t i = 0; i < asked_.size(); ++i) outcomes_[index(asked_[i])] = bits >> i & 1;
    const auto possible = [this](ChoiceId c) { return is_possible(c); };
    if (std::ranges::all_of(asked_, possible)) goes_on = visit(outcomes_);
  }
  return true;
}

bool Outcomes::is_possible(ChoiceId choice) const {
  const bool is_yes = outcomes_[index(choice)] != 0;
  if (is_yes && !plan_.task(deciders(choice).first).when.holds(outcomes_)) return false;
  return std::ranges::all_of(asked_, [&](ChoiceId other) { return agree(choice, other); });
}

// Whether the outcome of a allows that of b.
bool Outcomes::agree(ChoiceId a, ChoiceId b) const {
  const Choice &x = plan_.choices[index(a)], &y = plan_.choices[index(b)];
  if (deciders(a).first != deciders(b).first) return true;
  const bool x_yes = outcomes_[index(a)] != 0, y_yes = outcomes_[index(b)] != 0;
  if (x.watched != y.watched) {
    const auto after = plan_.after(y.watched);
    return !x_yes || y_yes || std::ranges::find(after, x.watched) == after.end();
  }
  if (x.rule == y.rule) return x_yes == y_yes;
  return x.rule == Choice::Rule::unfinished ? x_yes || !y_yes : y_yes || !x_yes;
}

std::string Outcomes::text() const {
  std::vector<When> conditions;
  for (const ChoiceId c : asked_) {
    conditions.push_back(outcomes_[index(c)] != 0 ? When::yes(c) : When::no(c));
  }
  return text_of(conditions);
}

}  // namespace tidegate
