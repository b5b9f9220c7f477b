#include "validate/field_tables.hpp"

#include <fmt/core.h>

#include "models/base/units.hpp"

namespace tidegate {
namespace {

std::string observed_text(const Observed& o) {
  if (o.low == o.high) return to_text(Bytes(o.low));
  return fmt::format("{} to {}", to_text(Bytes(o.low)), to_text(Bytes(o.high)));
}

std::string mark(const FieldRow& row) {
  if (row.is_estimate) return "estimate";
  if (!row.is_complete) return "assumed inputs";
  return row.is_missed() ? "MISSED" : "ok";
}

}  // namespace

Table field_rows_table(const Field& field, const FieldRows& which) {
  Table table{
      .header = {"report, run", "quantity", "predicted", "observed", "error", ""},
      .rows = {},
      .align = {Align::left, Align::left, Align::right, Align::right, Align::right, Align::left}};
  std::string last, last_run;
  for (const FieldRow& row : field.rows) {
    if (!which(row)) continue;
    if (row.case_name != last) table.rows.push_back({row.case_name});
    const bool repeats = row.case_name == last && row.run == last_run;
    last = row.case_name, last_run = row.run;
    table.rows.push_back({repeats ? "" : "  " + row.run, row.quantity,
                          to_text(Bytes(row.predicted)), observed_text(row.observed),
                          fmt::format("{:+.1f} %", 100 * row.relative_error()), mark(row)});
  }
  return table;
}

Table field_verdicts_table(const Field& field) {
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

Table field_summary_table(const Field& field) {
  Table table{.header = {"absolute error of", "rows", "mean", "worst", "where"},
              .rows = {},
              .align = {Align::left, Align::right, Align::right, Align::right, Align::left}};
  for (const FieldSummary& s : field.summary) {
    table.rows.push_back({s.what, std::to_string(s.rows), fmt::format("{:.1f} %", 100 * s.mean),
                          fmt::format("{:.1f} %", 100 * s.worst), s.worst_row});
  }
  return table;
}

std::vector<std::string> field_remarks(const Field& field) {
  std::vector<std::string> lines;
  std::string last;
  const auto add = [&](const std::string& name, const std::string& run, const std::string& note) {
    if (note.empty() || note == last) return;
    last = note;
    lines.push_back(fmt::format("{}, {}: {}", name, run, note));
  };
  for (const FieldRow& row : field.rows) add(row.case_name, row.run, row.note);
  for (const FieldVerdict& v : field.verdicts) add(v.case_name, v.run, v.note);
  return lines;
}

std::vector<std::string> field_left_out(const Field& field) {
  std::vector<std::string> lines;
  for (const FieldCase& c : field.cases) {
    if (!c.elsewhere.empty()) lines.push_back(c.name + ": see " + c.elsewhere);
    for (const std::string& reason : c.not_simulated) lines.push_back(c.name + ": " + reason);
  }
  return lines;
}

std::vector<std::string> field_sources(const Field& field) {
  std::vector<std::string> lines;
  for (const FieldCase& c : field.cases) {
    std::string line = fmt::format("{}: {} ({})", c.name, c.title, c.source);
    for (std::size_t i = 0; i < c.assumed.size(); ++i)
      line += (i == 0 ? ". Assumed: " : "; ") + c.assumed[i];
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string field_count_text(const Field& field) {
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

}  // namespace tidegate
