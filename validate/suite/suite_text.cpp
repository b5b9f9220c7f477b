#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/report/table.hpp"
#include "validate/suite/suite.hpp"

namespace tidegate {
namespace {

const char* name_of(Pace pace) { return pace == Pace::paced ? "paced" : "native"; }

// What a reader should know of a row beside its numbers.
std::string remarks(const SuiteRow& row) {
  std::string text;
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (row.comparison.verdict != Verdict::agrees) add(tidegate::name_of(row.comparison.verdict));
  if (!row.comparison.same_peaks()) add("other peaks");
  if (!row.comparison.reordered.empty()) {
    add(fmt::format("{} lanes differ", row.comparison.reordered.size()));
  }
  if (row.comparison.other_choices > 0) {
    add(fmt::format("{} of {} choices differ", row.comparison.other_choices,
                    row.comparison.choices));
  }
  for (const Suspect& s : row.comparison.suspects) {
    add(fmt::format("{} takes {:.2f} times", s.device, s.ratio));
  }
  if (row.tries > 1) add(fmt::format("best of {}", row.tries));
  if (!row.cause.empty()) add(row.cause);
  return text;
}

std::string errors_text(const Suite& suite) {
  if (suite.verdict() == Verdict::inconclusive) {
    return fmt::format("Inconclusive: in all {} cases the host itself took more than the gate.\n",
                       suite.rows.size());
  }
  return fmt::format(
      "Mean of the absolute errors {:.1f} % (gate {:.0f} %), worst {:.1f} % (gate {:.0f} %), of {} "
      "conclusive cases of {}.\n",
      100 * *suite.mean(), 100 * suite.mean_gate, 100 * *suite.worst(), 100 * suite.worst_gate,
      suite.conclusive(), suite.rows.size());
}

}  // namespace

Table cases_table(const Suite& suite) {
  Table table{.header = {"case", "ranks", "predicted", "measured", "error", "host", ""},
              .rows = {},
              .align = {}};
  table.align.assign(7, Align::right);
  table.align.front() = table.align.back() = Align::left;
  for (const SuiteRow& row : suite.rows) {
    const Comparison& c = row.comparison;
    table.rows.push_back({row.name, std::to_string(row.ranks), to_text(c.step.predicted),
                          to_text(c.step.measured), percent(c.step.error()),
                          fmt::format("{:.1f} %", 100 * c.floor), remarks(row)});
  }
  return table;
}

std::string to_text(const Suite& suite) {
  std::string text =
      fmt::format("An iteration, predicted and measured on a {} rig\n\n", name_of(suite.pace));
  text += to_text(cases_table(suite)) + "\n" + errors_text(suite);
  text +=
      fmt::format("Peaks of pools as predicted in {} of {}, tasks and order of every lane in {}.\n",
                  suite.rows.size() - suite.other_peaks(), suite.rows.size(),
                  suite.rows.size() - suite.other_orders());
  return text + "host: part of the iteration by which the system woke our threads late.\n";
}

std::string to_json(const Suite& suite) {
  using nlohmann::ordered_json;
  ordered_json rows = ordered_json::array();
  for (const SuiteRow& row : suite.rows) {
    rows.push_back({{"name", row.name},
                    {"policy", row.policy},
                    {"profile", row.profile},
                    {"ranks", row.ranks},
                    {"tries", row.tries},
                    {"cause", row.cause},
                    {"comparison", ordered_json::parse(to_json(row.comparison))}});
  }
  const auto number = [](std::optional<double> n) { return n ? ordered_json(*n) : ordered_json(); };
  const ordered_json json{
      {"pace", name_of(suite.pace)},          {"verdict", tidegate::name_of(suite.verdict())},
      {"mean_error", number(suite.mean())},   {"mean_gate", suite.mean_gate},
      {"worst_error", number(suite.worst())}, {"worst_gate", suite.worst_gate},
      {"conclusive", suite.conclusive()},     {"cases", std::move(rows)}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tidegate
