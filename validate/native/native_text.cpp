#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/report/table.hpp"
#include "validate/native/native.hpp"

namespace tidegate {
namespace {

using nlohmann::ordered_json;

std::string percent(double fraction) { return fmt::format("{:+.1f} %", 100 * fraction); }

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
      suite.hardware.empty() ? fmt::format("measured just before, in {:.0f} s", suite.rate_seconds)
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

ordered_json row_json(const NativeSuite& suite, const NativeRow& row) {
  ordered_json runs = ordered_json::array();
  for (const NativeRun& run : row.runs) {
    runs.push_back(
        {{"step_s", run.step.value()}, {"lateness", run.lateness}, {"spoiled", run.spoiled}});
  }
  ordered_json json{{"name", row.name},
                    {"policy", row.policy},
                    {"conclusive", suite.is_conclusive(row)},
                    {"predicted_s", row.predicted.value()},
                    {"low_s", nullptr},
                    {"high_s", nullptr},
                    {"measured_s", row.measured().value()},
                    {"spread", row.spread()},
                    {"error", row.error()},
                    {"inside", nullptr},
                    {"cause", row.cause},
                    {"runs", std::move(runs)},
                    {"comparison", nullptr}};
  if (row.interval) {
    json["low_s"] = row.interval->low.value();
    json["high_s"] = row.interval->high.value();
  }
  if (const auto inside = row.is_inside()) json["inside"] = *inside;
  if (row.comparison) json["comparison"] = ordered_json::parse(to_json(*row.comparison));
  return json;
}

ordered_json rates_json(const NativeSuite& suite) {
  ordered_json list = ordered_json::array();
  for (const calib::Section& section : suite.rates) {
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

}  // namespace

Table rates_table(const NativeSuite& suite) {
  Table table{.header = {"rate", "value", "uncertainty"}, .rows = {}, .align = {}};
  for (const calib::Section& section : suite.rates) {
    for (const calib::Entry& e : section.entries) {
      table.rows.push_back({section.key + "." + e.key, e.text,
                            e.uncertainty > 0 ? fmt::format("{:.1f} %", 100 * e.uncertainty)
                            : e.is_assumed    ? "assumed"
                                              : ""});
    }
  }
  return table;
}

Table cases_table(const NativeSuite& suite) {
  Table table{.header = {"case", "predicted", "nine in ten", "measured", "spread", "runs", "error",
                         "inside", ""},
              .rows = {},
              .align = {}};
  table.align.assign(9, Align::right);
  table.align.front() = table.align.back() = Align::left;
  for (const NativeRow& row : suite.rows) {
    const std::size_t clean = row.clean().size();
    const bool has_clean = clean > 0;
    const auto inside = row.is_inside();
    table.rows.push_back(
        {row.name, to_text(row.predicted),
         row.interval
             ? fmt::format("{} to {}", to_text(row.interval->low), to_text(row.interval->high))
             : "",
         has_clean ? to_text(row.measured()) : "",
         has_clean ? fmt::format("{:.1f} %", 100 * row.spread()) : "",
         fmt::format("{} of {}", clean, row.runs.size()), has_clean ? percent(row.error()) : "",
         inside ? (*inside ? "yes" : "no") : "", remarks(suite, row)});
  }
  return table;
}

std::string to_text(const NativeSuite& suite) {
  const auto coverage = suite.coverage();
  std::string text = rates_text(suite);
  if (!suite.is_gated) {
    text += "Ungated: samples and runs beside other work count too, so this shows little.\n\n";
  }
  text += fmt::format(
      "Floor: {} clean runs of '{}' in a row differ by {:.1f} % (median of all pairs)\n\n",
      suite.floor.clean().size(), suite.floor.name, 100 * suite.repeat_error());
  text += "An iteration, predicted and measured on this machine at full speed\n\n" +
          to_text(without_remarks(cases_table(suite))) + remarks_text(suite);
  text += fmt::format(
      "\n{}: median of the absolute errors {:.1f} % (gate {:.0f} %), worst {:.1f} %, of {} "
      "conclusive cases of {}.\n",
      verdict_text(suite), 100 * suite.median_error(), 100 * suite.gate, 100 * suite.worst_error(),
      suite.conclusive(), suite.rows.size());
  text += fmt::format(
      "Within the prediction's interval (nine in ten): {} of {} medians, {} of {} clean runs.\n",
      coverage.medians_inside, coverage.medians, coverage.inside, coverage.all);
  return text + fmt::format(
                    "spread: of clean runs, slowest over fastest less 1. A case is conclusive with "
                    "{} clean runs;\na run beside other work or traffic does not count.\n",
                    suite.least_clean);
}

std::string to_json(const NativeSuite& suite) {
  const auto coverage = suite.coverage();
  ordered_json rows = ordered_json::array();
  for (const NativeRow& row : suite.rows) rows.push_back(row_json(suite, row));
  const ordered_json json{{"pace", "native"},
                          {"verdict", name_of(suite.verdict())},
                          {"hardware", suite.hardware},
                          {"gated", suite.is_gated},
                          {"rates", rates_json(suite)},
                          {"rate_seconds", suite.rate_seconds},
                          {"floor",
                           {{"case", suite.floor.name},
                            {"repeat_error", suite.repeat_error()},
                            {"run", row_json(suite, suite.floor)}}},
                          {"median_error", suite.median_error()},
                          {"gate", suite.gate},
                          {"worst_error", suite.worst_error()},
                          {"conclusive", suite.conclusive()},
                          {"coverage",
                           {{"medians_inside", coverage.medians_inside},
                            {"medians", coverage.medians},
                            {"runs_inside", coverage.inside},
                            {"runs", coverage.all}}},
                          {"cases", std::move(rows)}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tidegate
