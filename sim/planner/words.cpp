#include "sim/planner/words.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "sim/report/words.hpp"

namespace tidegate::planner {
namespace {

using State = Assessment::State;

const char* name_of(State state) {
  switch (state) {
    case State::trained:
      return "";
    case State::refused:
      return "not possible";
    case State::does_not_fit:
      return "does not fit";
    case State::cannot_win:
      return "not simulated";
    case State::over_budget:
      return "over the budget";
    case State::stopped:
      return "not looked at";
  }
  return "";
}

std::string speed_text(const Comparison& c, const Assessment& a) {
  std::string text = fmt::format("{} tokens/s, {} and {} for the run, {} per million tokens",
                                 number_text(a.tokens_per_second), days_text(a.days()),
                                 money_text(c, a.costs.total()), money_text(c, c.per_million(a)));
  if (a.range) {
    const double per_second = a.time / a.iteration_time / 86400;
    text +=
        fmt::format("; nine in ten within {} to {}", days_text(a.range->low.value() * per_second),
                    days_text(a.range->high.value() * per_second));
  }
  return text;
}

std::string limits_text(const Comparison& c) {
  std::string text;
  if (c.days) text += fmt::format(" within {}", days_text(*c.days));
  if (c.budget) text += fmt::format(" for at most {}", money_text(c, *c.budget));
  return text;
}

std::string none_text(const Comparison& c) {
  const auto trained = c.trained();
  if (trained.empty()) {
    const bool is_open = std::ranges::any_of(
        c.machines, [](const Assessment& a) { return a.state == State::stopped; });
    return is_open ? "No machine that was looked at trains this; some were not looked at."
                   : "None of these machines trains this.";
  }
  const auto days = [&](std::size_t i) { return c.machines[i].days(); };
  const auto outlay = [&](std::size_t i) { return c.machines[i].costs.outlay(); };
  const std::size_t fastest = *std::ranges::min_element(trained, {}, days);
  std::string text =
      fmt::format("None of these machines trains this{}. The fastest, {}: {}.", limits_text(c),
                  c.machines[fastest].build.name, speed_text(c, c.machines[fastest]));
  if (c.budget) {
    const std::size_t least = *std::ranges::min_element(trained, {}, outlay);
    text += fmt::format(" The least to pay is {}, for {}.", money_text(c, outlay(least)),
                        c.machines[least].build.name);
  }
  return text;
}

}  // namespace

std::vector<std::size_t> by_cost(const Comparison& c) {
  std::vector<std::size_t> order = c.trained();
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return c.machines[i].costs.total(); });
  return order;
}

std::string money_text(const Comparison& c, Money money) {
  const bool is_small = std::abs(money) < 100;
  return fmt::format(
      "{} {}", is_small ? fmt::format("{:.2f}", money) : fmt::format("{:.0f}", money), c.currency);
}

std::string days_text(double days) {
  if (days < 1) return fmt::format("{:.3g} hours", days * 24);
  return days < 1000 ? fmt::format("{:.3g} days", days)
                     : fmt::format("{:.3g} years", days / 365.25);
}

std::string binding_text(const Assessment& a) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, a.binding.size()); ++i)
    text +=
        fmt::format("{}{} {:.2f}", i > 0 ? ", then " : "", a.binding[i].name, a.binding[i].value);
  return text.empty() ? "no single resource" : text;
}

std::string life_text(const Assessment& a) {
  if (a.build.drives == 0) return "no drives";
  if (a.usage.drive_life_years) return fmt::format("{:.2g} years", *a.usage.drive_life_years);
  return a.usage.drives > 0 ? "not rated or not written" : "not written";
}

std::string question_text(const Comparison& c) {
  std::string text = fmt::format("Asked: {} tokens in iterations of {} sequences ({:.0f} tokens)",
                                 count_text(c.tokens), c.sequences, c.tokens_per_iteration);
  return text + limits_text(c) + ".";
}

std::string answer_text(const Comparison& c) {
  if (!c.answer) return none_text(c);
  const Assessment& a = c.machines[*c.answer];
  const bool is_fastest = c.budget && !c.days;
  std::string text = fmt::format("{}{}: {}. {}.", is_fastest ? "Fastest" : "Cheapest",
                                 limits_text(c), a.build.name, speed_text(c, a));
  text += a.bill.rent ? fmt::format(" Rent: {} an hour.", money_text(c, *a.bill.rent))
                      : fmt::format(" Purchase: {}.", money_text(c, a.costs.purchase));
  if (!c.front.empty() && c.front.front() != *c.answer && !is_fastest) {
    const Assessment& fast = c.machines[c.front.front()];
    text += fmt::format("\nFastest: {}. {}.", fast.build.name, speed_text(c, fast));
  }
  if (!c.alike.empty()) {
    text +=
        fmt::format("\nNot told apart from the {} by the {}:", is_fastest ? "fastest" : "cheapest",
                    a.range ? "intervals" : fmt::format("margin of {:g} %", 100 * c.margin));
    for (const std::size_t i : c.alike)
      text += (i == c.alike.front() ? " " : "; ") + c.machines[i].build.name;
    text += ".";
  }
  return text;
}

std::vector<std::string> not_looked_at(const Comparison& c) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const Assessment& a : c.machines) {
    if (a.is_trained()) continue;
    const std::string why = fmt::format("{} ({})", name_of(a.state), a.reason);
    auto at = std::ranges::find(groups, why, [](const auto& g) { return g.first; });
    if (at == groups.end()) at = groups.insert(groups.end(), {why, {}});
    std::string name = a.build.name;
    if (a.state == State::cannot_win)
      name += fmt::format(" (at most {} tokens/s)", number_text(a.most_tokens_per_second));
    at->second.push_back(std::move(name));
  }
  std::vector<std::string> lines;
  for (const auto& [why, names] : groups) lines.push_back(join(names, "; ") + ": " + why);
  return lines;
}

std::string simulate_command(const Comparison&, const Assessment& a, const std::string& scenario) {
  std::string text = "tidegate simulate " + scenario;
  for (const auto& [key, value] : a.sets) text += " \\\n    --set " + shell_word(key + "=" + value);
  return text;
}

std::string layouts_text(const Comparison& c) {
  return fmt::format(
      "Layouts looked at on each machine, at the same {} sequences an iteration: data parallel "
      "over "
      "all GPUs, tensor parallel in powers of two within a node, pipelines of powers of two where "
      "ZeRO is at most 1, and every micro-batch that is a power of two; the rest is accumulated.",
      c.sequences);
}

}  // namespace tidegate::planner
