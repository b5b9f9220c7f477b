#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "validate/field_tables.hpp"

namespace tidegate {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t width = 96;

std::string item(const std::string& text) { return "  - " + wrap(text, width - 4, 4) + "\n"; }

std::string list_text(const char* title, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += item(line);
  return text.empty() ? "" : std::string(title) + "\n" + text + "\n";
}

}  // namespace

std::string to_text(const Field& field) {
  std::string text = "Memory in public reports, predicted and observed\n\n";
  if (!field.rows.empty()) text += to_text(field_rows_table(field)) + "\n";
  if (!field.verdicts.empty()) text += to_text(field_verdicts_table(field)) + "\n";
  if (!field.summary.empty()) text += to_text(field_summary_table(field)) + "\n";
  return text + field_count_text(field) + "\n" + list_text("Remarks", field_remarks(field)) +
         list_text("Listed, not simulated here", field_left_out(field)) +
         list_text("Reports", field_sources(field));
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
