#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "models/base/units.hpp"
#include "sim/report/table.hpp"
#include "validate/published.hpp"

namespace tidegate {
namespace {

std::string value_text(const PublishedRow& row, double v) {
  if (row.unit == "s") return to_text(Seconds(v));
  if (row.unit == "B") return to_text(Bytes(v));
  return fmt::format("{:.3g}x", v);
}

std::string verdict(const PublishedRow& row) {
  if (!row.gate) return "";
  return row.is_missed() ? fmt::format("MISSED (gate {:.0f} %)", 100 * *row.gate) : "ok";
}

Table rows_table(const Published& p) {
  Table table{
      .header = {"case", "variant", "quantity", "predicted", "measured", "error", "sample", ""},
      .rows = {},
      .align = {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right,
                Align::left, Align::left}};
  std::string last;
  for (const PublishedRow& row : p.rows) {
    const std::string here = row.case_name + "/" + row.variant;
    const bool repeats = here == last;
    last = here;
    table.rows.push_back({repeats ? "" : row.case_name, repeats ? "" : row.variant, row.quantity,
                          value_text(row, row.predicted), value_text(row, row.measured),
                          fmt::format("{:+.1f} %", 100 * row.relative_error()),
                          row.in_sample ? "in" : "out", verdict(row)});
  }
  return table;
}

Table summary_table(const Published& p) {
  Table table{.header = {"absolute error of", "rows", "mean", "worst", "where"},
              .rows = {},
              .align = {Align::left, Align::right, Align::right, Align::right, Align::left}};
  for (const PublishedSummary& s : p.summary) {
    table.rows.push_back({s.what, std::to_string(s.rows), fmt::format("{:.1f} %", 100 * s.mean),
                          fmt::format("{:.1f} %", 100 * s.worst), s.worst_row});
  }
  return table;
}

// The row of one quantity of the run that `at` belongs to, or none.
const PublishedRow* find_row(const Published& p, const PublishedRow& at,
                             std::string_view quantity) {
  for (const PublishedRow& row : p.rows) {
    if (row.case_name == at.case_name && row.variant == at.variant && row.quantity == quantity)
      return &row;
  }
  return nullptr;
}

std::string gates_text(const Published& p) {
  return fmt::format("{} of {} gated rows hold.\n", p.gated - p.missed, p.gated);
}

}  // namespace

std::string to_brief_text(const Published& p) {
  Table table{.header = {"case", "run", "predicted", "measured", "error", "speed-up", "measured"},
              .rows = {},
              .align = {Align::left, Align::left, Align::right, Align::right, Align::right,
                        Align::right, Align::right}};
  for (const PublishedRow& row : p.rows) {
    if (row.quantity != "iteration") continue;
    const PublishedRow* speedup = find_row(p, row, "speedup");
    table.rows.push_back({row.case_name, row.variant + (row.in_sample ? " (calibrated)" : ""),
                          value_text(row, row.predicted), value_text(row, row.measured),
                          fmt::format("{:+.1f} %", 100 * row.relative_error()),
                          speedup ? value_text(*speedup, speedup->predicted) : "",
                          speedup ? value_text(*speedup, speedup->measured) : ""});
  }
  return fmt::format("{}, time of an iteration\nmeasured: {}\n\n{}\n{}\n{}", p.title, p.source,
                     to_text(table), to_text(summary_table(p)), gates_text(p));
}

std::string to_text(const Published& p) {
  std::string text = fmt::format("{}\nmeasured: {}\nprofile:  {}, one for all rows\n\n", p.title,
                                 p.source, p.profile);
  text += to_text(rows_table(p)) + "\n" + to_text(summary_table(p)) + "\n";
  text += gates_text(p);
  if (!p.ablation.empty()) text += "\n" + p.ablation;
  text += "\nNotes\n";
  for (const std::string& note : p.notes) text += "  " + wrap(note, 96, 4) + "\n";
  text +=
      "  in: a quantity that set a value of the profile. out: one that did not. The file system's "
      "rates\n"
      "  come from the first synchronous transfers of the multi-path logs, before any steady "
      "state.\n";
  return text;
}

std::string to_json(const Published& p) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const PublishedRow& r : p.rows) {
    rows.push_back({{"case", r.case_name},
                    {"variant", r.variant},
                    {"quantity", r.quantity},
                    {"unit", r.unit},
                    {"predicted", r.predicted},
                    {"measured", r.measured},
                    {"relative_error", r.relative_error()},
                    {"in_sample", r.in_sample},
                    {"gated", r.gate.has_value()},
                    {"gate", r.gate ? nlohmann::ordered_json(*r.gate) : nlohmann::ordered_json()}});
  }
  nlohmann::ordered_json summary = nlohmann::ordered_json::array();
  for (const PublishedSummary& s : p.summary) {
    summary.push_back({{"what", s.what},
                       {"rows", s.rows},
                       {"mean_absolute_error", s.mean},
                       {"worst_absolute_error", s.worst},
                       {"worst_row", s.worst_row}});
  }
  const nlohmann::ordered_json all = {{"schema", "tidegate.published/1"},
                                      {"title", p.title},
                                      {"source", p.source},
                                      {"profile", p.profile},
                                      {"rows", rows},
                                      {"summary", summary},
                                      {"gated", p.gated},
                                      {"missed", p.missed},
                                      {"notes", p.notes}};
  return all.dump(2) + "\n";
}

}  // namespace tidegate
