#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "models/base/units.hpp"
#include "sim/report/table.hpp"
#include "validate/field.hpp"

namespace tidegate {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t width = 96;

std::string observed_text(const Observed& o) {
  if (o.low == o.high) return to_text(Bytes(o.low));
  return fmt::format("{} to {}", to_text(Bytes(o.low)), to_text(Bytes(o.high)));
}

std::string mark(const FieldRow& row) {
  if (row.is_estimate) return "estimate";
  if (!row.is_complete) return "assumed inputs";
  return row.is_missed() ? "MISSED" : "ok";
}

Table rows_table(const Field& field) {
  Table table{
      .header = {"report, run", "quantity", "predicted", "observed", "error", ""},
      .rows = {},
      .align = {Align::left, Align::left, Align::right, Align::right, Align::right, Align::left}};
  std::string last, last_run;
  for (const FieldRow& row : field.rows) {
    if (row.case_name != last) table.rows.push_back({row.case_name});
    const bool repeats = row.case_name == last && row.run == last_run;
    last = row.case_name, last_run = row.run;
    table.rows.push_back({repeats ? "" : "  " + row.run, row.quantity,
                          to_text(Bytes(row.predicted)), observed_text(row.observed),
                          fmt::format("{:+.1f} %", 100 * row.relative_error()), mark(row)});
  }
  return table;
}

Table verdicts_table(const Field& field) {
  Table table{.header = {"report, run", "predicted", "observed", ""},
              .rows = {},
              .align = {Align::left, Align::left, Align::left, Align::left}};
  std::string last;
  const auto words = [](const std::string& verdict) {
    return verdict == "fits" ? verdict : verdict + " full";
  };
  for (const FieldVerdict& v : field.verdicts) {
    if (v.case_name != last) table.rows.push_back({v.case_name});
    last = v.case_name;
    const char* agreement = v.agrees() ? "ok" : v.is_gated ? "MISSED" : "differs";
    table.rows.push_back({"  " + v.run, words(v.predicted), words(v.observed), agreement});
  }
  return table;
}

Table summary_table(const Field& field) {
  Table table{.header = {"absolute error of", "rows", "mean", "worst", "where"},
              .rows = {},
              .align = {Align::left, Align::right, Align::right, Align::right, Align::left}};
  for (const FieldSummary& s : field.summary) {
    table.rows.push_back({s.what, std::to_string(s.rows), fmt::format("{:.1f} %", 100 * s.mean),
                          fmt::format("{:.1f} %", 100 * s.worst), s.worst_row});
  }
  return table;
}

std::string item(const std::string& text) { return "  - " + wrap(text, width - 4, 4) + "\n"; }

// What is known of rows that miss or differ.
std::string causes_text(const Field& field) {
  std::string text, last;
  const auto add = [&](const std::string& name, const std::string& run, const std::string& note) {
    if (note.empty() || note == last) return;
    last = note;
    text += item(fmt::format("{}, {}: {}", name, run, note));
  };
  for (const FieldRow& row : field.rows) add(row.case_name, row.run, row.note);
  for (const FieldVerdict& v : field.verdicts) add(v.case_name, v.run, v.note);
  return text.empty() ? "" : "Remarks\n" + text + "\n";
}

std::string left_out_text(const Field& field) {
  std::string text;
  for (const FieldCase& c : field.cases) {
    if (!c.elsewhere.empty()) text += item(c.name + ": see " + c.elsewhere);
    for (const std::string& reason : c.not_simulated) text += item(c.name + ": " + reason);
  }
  return text.empty() ? "" : "Listed, not simulated here\n" + text + "\n";
}

std::string sources_text(const Field& field) {
  std::string text;
  for (const FieldCase& c : field.cases) {
    std::string line = fmt::format("{}: {} ({})", c.name, c.title, c.source);
    for (std::size_t i = 0; i < c.assumed.size(); ++i)
      line += (i == 0 ? ". Assumed: " : "; ") + c.assumed[i];
    text += item(line);
  }
  return "Reports\n" + text + "\n";
}

std::string count_text(const Field& field) {
  std::int32_t agree = 0;
  for (const FieldVerdict& v : field.verdicts) agree += v.agrees() ? 1 : 0;
  return fmt::format(
      "Whether a run fits: {} of {} answers agree.\n"
      "{} of {} gated rows and answers hold; none set a value of a profile.\n"
      "gpu_used is what nvidia-smi prints; predicted are allocated bytes and the CUDA context, "
      "without\n"
      "what the allocator keeps beside them. gpu_reserved is compared with allocated bytes.\n",
      agree, field.verdicts.size(), field.gated - field.missed, field.gated);
}

}  // namespace

std::string to_text(const Field& field) {
  std::string text = "Memory in public reports, predicted and observed\n\n";
  if (!field.rows.empty()) text += to_text(rows_table(field)) + "\n";
  if (!field.verdicts.empty()) text += to_text(verdicts_table(field)) + "\n";
  if (!field.summary.empty()) text += to_text(summary_table(field)) + "\n";
  return text + count_text(field) + "\n" + causes_text(field) + left_out_text(field) +
         sources_text(field);
}

std::string to_json(const Field& field) {
  Json cases = Json::array(), rows = Json::array(), verdicts = Json::array();
  for (const FieldCase& c : field.cases) {
    cases.push_back({{"case", c.name},
                     {"title", c.title},
                     {"source", c.source},
                     {"elsewhere", c.elsewhere},
                     {"assumed", c.assumed},
                     {"not_simulated", c.not_simulated}});
  }
  for (const FieldRow& r : field.rows) {
    rows.push_back({{"case", r.case_name},
                    {"run", r.run},
                    {"quantity", r.quantity},
                    {"measure", r.measure},
                    {"predicted_bytes", r.predicted},
                    {"observed_least_bytes", r.observed.low},
                    {"observed_most_bytes", r.observed.high},
                    {"relative_error", r.relative_error()},
                    {"complete", r.is_complete},
                    {"estimate", r.is_estimate},
                    {"gate", r.gate ? Json(*r.gate) : Json()},
                    {"missed", r.is_missed()},
                    {"note", r.note}});
  }
  for (const FieldVerdict& v : field.verdicts) {
    verdicts.push_back({{"case", v.case_name},
                        {"run", v.run},
                        {"predicted", v.predicted},
                        {"observed", v.observed},
                        {"agrees", v.agrees()},
                        {"gated", v.is_gated},
                        {"note", v.note}});
  }
  Json summary = Json::array();
  for (const FieldSummary& s : field.summary) {
    summary.push_back({{"what", s.what},
                       {"rows", s.rows},
                       {"mean_absolute_error", s.mean},
                       {"worst_absolute_error", s.worst},
                       {"worst_row", s.worst_row}});
  }
  const Json all = {{"schema", "tidegate.field/1"}, {"cases", cases},     {"rows", rows},
                    {"verdicts", verdicts},         {"summary", summary}, {"gated", field.gated},
                    {"missed", field.missed}};
  return all.dump(2) + "\n";
}

}  // namespace tidegate
