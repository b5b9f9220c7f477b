#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/plan/plan_text.hpp"

namespace tidegate {
namespace {

using namespace plan_text;

std::string name_line(const std::string& name) {
  ensure(name.find('\n') == std::string::npos, "a name in a plan has one line");
  return name + "\n";
}

std::string when_text(When when) {
  return fmt::format("{}:{}", outcome_names.at(when.wants_yes() ? 1 : 0), index(when.choice()));
}

std::string effect_text(const Effect& e) {
  std::string text =
      fmt::format(" {}:{}", effect_names.at(static_cast<std::size_t>(e.kind)), e.target);
  if (e.count != 0) text += fmt::format("*{}", e.count);
  if (!e.when.is_always()) text += "?" + when_text(e.when);
  return text;
}

std::string task_line(const Plan& plan, TaskId t) {
  const Task& x = plan.task(t);
  std::string line = fmt::format(
      "task {} name {} item {} work {} lane {} rank {} iteration {} phase {}", index(t),
      index(x.name), x.item, index(x.work), index(x.lane), x.rank, x.iteration, name_of(x.phase));
  if (!x.when.is_always()) line += " when " + when_text(x.when);
  if (!plan.after(t).empty()) line += " after";
  for (const TaskId before : plan.after(t)) line += fmt::format(" {}", index(before));
  if (!plan.effects(t).empty()) line += " does";
  for (const Effect& e : plan.effects(t)) line += effect_text(e);
  return line + " # " + name_line(plan.label(t));
}

std::string tables(const Plan& plan) {
  std::string text =
      fmt::format("{}\niterations {}\nranks {}\n", heading, plan.iterations, plan.ranks);
  for (const Lane& l : plan.lanes)
    text += fmt::format("lane {} {} {}", l.rank, l.width, name_line(l.name));
  for (const Pool& p : plan.pools) {
    text += fmt::format("pool {} {} {} {}", tier_names.at(static_cast<std::size_t>(p.place.tier)),
                        p.place.index, p.capacity.value(), name_line(p.name));
  }
  for (const std::string& owner : plan.owners) text += "owner " + name_line(owner);
  for (const Tokens& t : plan.tokens)
    text += fmt::format("tokens {} {}", t.count, name_line(t.name));
  for (const Lock& l : plan.locks) text += "lock " + name_line(l.name);
  for (const std::string& name : plan.names) text += "name " + name_line(name);
  for (const Work& work : plan.works) text += "work " + encode(work) + "\n";
  for (const Buffer& b : plan.buffers) {
    text += fmt::format("buffer {} {} {}\n", b.bytes, index(b.pool), index(b.owner));
  }
  for (const Choice& c : plan.choices) {
    text += fmt::format("choice {} {}\n", rule_names.at(static_cast<std::size_t>(c.rule)),
                        index(c.watched));
  }
  return text;
}

}  // namespace

std::string dump(const Plan& plan) {
  std::string text = tables(plan);
  for (std::size_t t = 0; t < plan.size(); ++t) text += task_line(plan, static_cast<TaskId>(t));
  for (const Mark& m : plan.marks) {
    text += fmt::format("mark {} iteration {} rank {} phase {}\n", index(m.task), m.iteration,
                        m.rank, name_of(m.phase));
  }
  return text;
}

}  // namespace tidegate
