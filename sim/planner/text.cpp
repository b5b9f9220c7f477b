#include <algorithm>

#include <fmt/core.h>

#include "sim/planner/words.hpp"
#include "sim/report/table.hpp"
#include "sim/report/words.hpp"

namespace tidegate::planner {
namespace {

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent = 0) {
  std::string out, line;
  for (const char c : text + "\n") {
    if (c != '\n') {
      line += c;
      continue;
    }
    out += wrap(line, width, indent) + "\n";
    line.clear();
  }
  return out;
}

std::string head(const Comparison& c, std::size_t width) {
  std::string text = wrapped(
      fmt::format("{} · catalog {} of {} · {}", c.scenario, c.catalog, c.date, c.revision), width);
  if (c.is_example) text += "Prices are examples, not an offer: edit the catalog.\n";
  text += "\n";
  if (c.is_interrupted) text += "Interrupted: what was looked at so far.\n";
  return text + wrapped(question_text(c), width);
}

// Numbers are those of the first table, * the front.
std::string machines_text(const Comparison& c) {
  Table table{.header = {"", "machine", "tokens/s", "days", "cost", "per M", "purchase"},
              .rows = {},
              .align = {Align::left, Align::left, Align::right, Align::right, Align::right,
                        Align::right, Align::right}};
  std::size_t number = 0;
  for (const std::size_t i : by_cost(c)) {
    const Assessment& a = c.machines[i];
    const bool is_front = std::ranges::find(c.front, i) != c.front.end();
    table.rows.push_back({fmt::format("{}{}", ++number, is_front ? "*" : ""), a.build.name,
                          number_text(a.tokens_per_second), number_text(a.days()),
                          fmt::format("{:.0f}", a.costs.total()), number_text(c.per_million(a)),
                          a.bill.rent ? "-" : fmt::format("{:.0f}", a.costs.purchase)});
  }
  if (table.rows.empty()) return "";
  return "\n" + to_text(table) + "* no other is both cheaper and faster; money in " + c.currency +
         "\n";
}

std::string details_text(const Comparison& c) {
  Table table{.header = {"", "share", "energy", "wear", "rent", "kWh", "drive life", "binds"},
              .rows = {},
              .align = {Align::left, Align::right, Align::right, Align::right, Align::right,
                        Align::right, Align::right, Align::left}};
  std::size_t number = 0;
  const auto money = [](Money m) { return m > 0 ? fmt::format("{:.0f}", m) : "-"; };
  for (const std::size_t i : by_cost(c)) {
    const Assessment& a = c.machines[i];
    table.rows.push_back({std::to_string(++number), money(a.costs.capital), money(a.costs.energy),
                          money(a.costs.replacement), money(a.costs.rent),
                          number_text(a.costs.kilowatt_hours), life_text(a), binding_text(a)});
  }
  if (table.rows.empty()) return "";
  return "\nWhat the cost is made of, and what binds (% of an iteration per 1 % more):\n" +
         to_text(table);
}

std::string upgrades_text(const Comparison& c) {
  constexpr std::size_t most = 12;
  Table table{.header = {"one more", "of", "gain, tokens/s", "for", "per 1000"},
              .rows = {},
              .align = {Align::left, Align::left, Align::right, Align::right, Align::right}};
  for (const Upgrade& s : c.upgrades) {
    if (table.rows.size() == most) break;
    table.rows.push_back({s.what, c.machines[s.from].build.name, fmt::format("{:+.4g}", s.gain),
                          fmt::format("{:.0f}", s.price),
                          s.per_thousand ? fmt::format("{:.3g}", *s.per_thousand) : "-"});
  }
  if (table.rows.empty()) return "";
  std::string text = "\nWhat more of something gains, per 1000 " + c.currency +
                     " of purchase (most first):\n" + to_text(table);
  if (c.upgrades.size() > most) text += fmt::format("{} more: --json\n", c.upgrades.size() - most);
  return text;
}

std::string policy_text(const Comparison& c, std::size_t width) {
  if (!c.answer) return "";
  const Assessment& a = c.machines[*c.answer];
  std::string text = "\n" + wrapped("Its policy: " + a.policy + "; " + a.layout + ".", width, 2);
  text += wrapped(
      a.is_proved ? "No policy of the search's space is faster."
                  : fmt::format("The best of {} simulated; more with --simulations.", a.simulated),
      width);
  if (!a.note.empty()) text += wrapped("Note: " + a.note + ".", width, 2);
  return text;
}

std::string left_out_text(const Comparison& c, std::size_t width) {
  std::string text;
  for (const std::string& line : not_looked_at(c)) text += wrapped("  " + line, width, 4);
  return text.empty() ? "" : "\nNot in the table:\n" + text;
}

}  // namespace

std::string to_text(const Comparison& c, const std::string& scenario, std::size_t width) {
  std::string text = head(c, width) + wrapped(answer_text(c), width, 2) + machines_text(c) +
                     details_text(c) + upgrades_text(c) + policy_text(c, width) +
                     left_out_text(c, width) + "\n" + wrapped(layouts_text(c), width);
  if (c.answer) {
    text += "\nNext, the machine in full:\n  " +
            simulate_command(c, c.machines[*c.answer], scenario) + "\n";
  }
  return text;
}

}  // namespace tidegate::planner
