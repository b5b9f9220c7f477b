#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/report/table.hpp"
#include "validate/native/native.hpp"

namespace tidegate {
namespace {

using nlohmann::ordered_json;

// An absolute error.
std::string share(std::optional<double> error) {
  return error ? fmt::format("{:.1f} %", 100 * *error) : "none";
}

ordered_json number(std::optional<double> n) { return n ? ordered_json(*n) : ordered_json(); }

std::string last_reason(const NativeRow& row) {
  std::string reason;
  for (const NativeRun& run : row.runs) {
    if (!run.spoiled.empty()) reason = run.spoiled;
  }
  return reason;
}

std::string remarks(const NativeSuite& suite, const NativeRow& row) {
  std::string text;
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (!suite.is_conclusive(row)) add("inconclusive: " + last_reason(row));
  if (row.comparison) {
    for (const Suspect& s : row.comparison->suspects) {
      add(fmt::format("{} takes {:.2f} times", s.device, s.ratio));
    }
  }
  if (!row.cause.empty()) add(row.cause);
  return text;
}

// They are longer than a line.
Table without_remarks(Table table) {
  table.header.pop_back();
  table.align.pop_back();
  for (std::vector<std::string>& row : table.rows) row.pop_back();
  return table;
}

std::string remarks_text(const NativeSuite& suite) {
  std::string text;
  for (const NativeRow& row : suite.rows) {
    const std::string all = remarks(suite, row);
    constexpr std::size_t columns = 96, indent = 4;
    if (!all.empty()) text += "  " + wrap(row.name + ": " + all, columns, indent) + "\n";
  }
  return text.empty()
             ? ""
             : "\nRemarks (a device takes n times: its tasks against their prediction)\n" + text;
}

std::string rates_text(const NativeSuite& suite) {
  const std::string from =
      suite.hardware.empty()
          ? fmt::format(
                "in {} passes between the runs, {:.0f} s in all\n"
                "drift: deviation over all passes; noise: between neighbouring ones",
                suite.passes, suite.rate_seconds)
          : "of " + suite.hardware;
  return "Rates of this machine, " + from + "\n\n" + to_text(rates_table(suite)) + "\n";
}

std::string verdict_text(const NativeSuite& suite) {
  switch (suite.verdict()) {
    case Verdict::agrees:
      return "Agrees";
    case Verdict::differs:
      return "Differs";
    case Verdict::inconclusive:
      return "Inconclusive, too few cases have clean runs";
  }
  return "";
}

ordered_json interval_json(const std::optional<PredictionInterval>& interval) {
  if (!interval) return nullptr;
  return {{"low_s", interval->low.value()}, {"high_s", interval->high.value()}};
}

ordered_json runs_json(const NativeRow& row) {
  ordered_json runs = ordered_json::array();
  for (const NativeRun& run : row.runs) {
    runs.push_back({{"step_s", run.step.value()},
                    {"predicted_s", run.predicted.value()},
                    {"lateness", run.lateness},
                    {"spoiled", run.spoiled}});
  }
  return runs;
}

ordered_json row_json(const NativeSuite& suite, const NativeRow& row) {
  const auto if_clean = [&row](double n) {
    return row.clean().empty() ? ordered_json() : ordered_json(n);
  };
  ordered_json json{{"name", row.name},
                    {"policy", row.policy},
                    {"conclusive", suite.is_conclusive(row)},
                    {"forecast_s", row.forecast.value()},
                    {"forecast_interval", interval_json(row.forecast_interval())},
                    {"forecast_error", number(row.forecast_error())},
                    {"predicted_s", row.predicted().value()},
                    {"interval", interval_json(row.interval())},
                    {"measured_s", if_clean(row.measured().value())},
                    {"spread", if_clean(row.spread())},
                    {"error", number(row.error())},
                    {"inside", nullptr},
                    {"cause", row.cause},
                    {"runs", runs_json(row)},
                    {"comparison", nullptr}};
  if (const auto inside = row.is_inside()) json["inside"] = *inside;
  if (row.comparison) json["comparison"] = ordered_json::parse(to_json(*row.comparison));
  return json;
}

ordered_json rates_json(const Rates& rates) {
  ordered_json list = ordered_json::array();
  for (const calib::Section& section : rates) {
    for (const calib::Entry& e : section.entries) {
      list.push_back({{"key", section.key + "." + e.key},
                      {"value", e.text},
                      {"source", e.source},
                      {"assumed", e.is_assumed},
                      {"uncertainty", e.uncertainty}});
    }
  }
  return list;
}

ordered_json score_json(const NativeScore& score) {
  return {{"median_error", number(score.median_error)},
          {"worst_error", number(score.worst_error)},
          {"medians_inside", score.medians_inside},
          {"medians", score.medians},
          {"runs_inside", score.inside},
          {"runs", score.all}};
}

std::string percent_or_none(const calib::Entry& e) {
  if (e.uncertainty > 0) return fmt::format("{:.1f} %", 100 * e.uncertainty);
  return e.is_assumed ? "assumed" : "";
}

const calib::Entry* same_of(const Rates& rates, std::size_t section, const std::string& key) {
  if (section >= rates.size()) return nullptr;
  const auto at = std::ranges::find(rates[section].entries, key, &calib::Entry::key);
  return at == rates[section].entries.end() ? nullptr : &*at;
}

std::string scores_text(const NativeSuite& suite) {
  const auto line = [&suite](const char* what, const NativeScore& score) {
    return fmt::format(
        "{}: median of the absolute errors {}, worst {}; within nine in ten: {} of {} "
        "medians, {} of {} clean runs\n",
        what, share(score.median_error), share(score.worst_error), score.medians_inside,
        score.medians, score.inside, score.all);
  };
  std::string text =
      fmt::format("\n{}: {} of {} cases are conclusive, the gate is {:.0f} %{}.\n",
                  verdict_text(suite), suite.conclusive(), suite.rows.size(), 100 * suite.gate,
                  suite.hardware.empty() ? " for rates of both sides" : "");
  if (!suite.hardware.empty()) return text + line("Rates of the profile", suite.score());
  return text + line("Rates of both sides of a run", suite.score()) +
         line("Forecast by the first pass", suite.forecast_score());
}

}  // namespace

Table rates_table(const NativeSuite& suite) {
  Table table{
      .header = {"rate", "first pass", "all passes", "drift", "noise"}, .rows = {}, .align = {}};
  if (suite.all.empty()) table.header = {"rate", "value", "uncertainty"};
  for (std::size_t s = 0; s < suite.first.size(); ++s) {
    for (const calib::Entry& e : suite.first[s].entries) {
      std::vector<std::string> row = {suite.first[s].key + "." + e.key, e.text};
      const calib::Entry* const of_all = same_of(suite.all, s, e.key);
      if (!suite.all.empty()) row.push_back(of_all != nullptr ? of_all->text : "");
      row.push_back(percent_or_none(e));
      if (!suite.all.empty()) row.push_back(of_all != nullptr ? percent_or_none(*of_all) : "");
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Table cases_table(const NativeSuite& suite) {
  Table table{.header = {"case", "forecast", "its error", "predicted", "nine in ten", "measured",
                         "spread", "runs", "error", "inside", ""},
              .rows = {},
              .align = {}};
  table.align.assign(table.header.size(), Align::right);
  table.align.front() = table.align.back() = Align::left;
  for (const NativeRow& row : suite.rows) {
    const std::size_t clean = row.clean().size();
    const auto if_clean = [clean](std::string text) { return clean > 0 ? text : std::string(); };
    const auto interval = row.interval();
    const auto inside = row.is_inside();
    table.rows.push_back(
        {row.name, to_text(row.forecast), percent(row.forecast_error()), to_text(row.predicted()),
         interval ? fmt::format("{} to {}", to_text(interval->low), to_text(interval->high)) : "",
         if_clean(to_text(row.measured())), if_clean(fmt::format("{:.1f} %", 100 * row.spread())),
         fmt::format("{} of {}", clean, row.runs.size()), percent(row.error()),
         inside ? (*inside ? "yes" : "no") : "", remarks(suite, row)});
  }
  return table;
}

std::string to_text(const NativeSuite& suite) {
  std::string text = rates_text(suite);
  if (!suite.is_gated) {
    text += "Ungated: samples and runs beside other work count too, so this shows little.\n\n";
  }
  if (!suite.knows_traffic) {
    text +=
        "Traffic of others on the drive is not counted here: runs with files may have been beside "
        "some.\n\n";
  }
  const std::size_t floor_runs = suite.floor.clean().size();
  text += fmt::format("Floor: {} clean runs of '{}' in a row {}\n\n", floor_runs, suite.floor.name,
                      suite.repeat_error()
                          ? "differ by " + share(suite.repeat_error()) + " (median of all pairs)"
                          : "are too few to tell what two differ by");
  text += "An iteration, predicted and measured on this machine at full speed\n\n" +
          to_text(without_remarks(cases_table(suite))) + remarks_text(suite) + scores_text(suite);
  if (suite.hardware.empty()) {
    text +=
        "forecast: with the rates of the first pass; its error holds the machine's drift.\n"
        "predicted, error: with the mean of the rates just before and just after each run's "
        "round.\n";
  }
  return text + fmt::format(
                    "spread: of clean runs, slowest over fastest less 1. A case is conclusive with "
                    "{} clean runs;\na run beside other work or traffic does not count.\n",
                    suite.least_clean);
}

std::string to_json(const NativeSuite& suite) {
  ordered_json rows = ordered_json::array();
  for (const NativeRow& row : suite.rows) rows.push_back(row_json(suite, row));
  const ordered_json json{{"pace", "native"},
                          {"verdict", name_of(suite.verdict())},
                          {"hardware", suite.hardware},
                          {"gated", suite.is_gated},
                          {"traffic_counted", suite.knows_traffic},
                          {"passes", suite.passes},
                          {"rate_seconds", suite.rate_seconds},
                          {"first_rates", rates_json(suite.first)},
                          {"rates", rates_json(suite.all)},
                          {"floor",
                           {{"case", suite.floor.name},
                            {"repeat_error", number(suite.repeat_error())},
                            {"run", row_json(suite, suite.floor)}}},
                          {"gate", suite.gate},
                          {"conclusive", suite.conclusive()},
                          {"score", score_json(suite.score())},
                          {"forecast_score", score_json(suite.forecast_score())},
                          {"cases", std::move(rows)}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tidegate
