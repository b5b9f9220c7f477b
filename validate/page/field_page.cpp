#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/base/units.hpp"
#include "validate/field_tables.hpp"
#include "validate/page/published_page.hpp"

namespace tidegate::page {
namespace {

bool is_firm(const FieldRow& row) { return row.is_complete && !row.is_estimate; }

Html summary(const Field& f) {
  const auto agree = std::ranges::count_if(f.verdicts, &FieldVerdict::agrees);
  std::vector<Figure> list = {
      {"Gates that hold", fmt::format("{} of {}", f.gated - f.missed, f.gated),
       fmt::format("{} missed", f.missed)},
      {"Whether a run fits", fmt::format("{} of {}", agree, f.verdicts.size()), "answers agree"}};
  if (!f.summary.empty()) {
    const FieldSummary& s = f.summary.front();
    list.push_back(
        {s.what, fmt::format("{:.1f} %", 100 * s.mean),
         fmt::format("mean error of {}; worst {:.1f} %, {}", s.rows, 100 * s.worst, s.worst_row)});
  }
  Html html = figures(list);
  html += paragraphs("None of these set a value of a profile: every row is out of sample.");
  return html;
}

Html error_bars(const Field& f) {
  Bars b{.title = "Error of each row whose inputs are complete", .description = {}, .bars = {}};
  for (const FieldRow& row : f.rows) {
    if (!is_firm(row)) continue;
    const std::string text =
        fmt::format("{:+.1f} %{}", 100 * row.relative_error(), row.is_missed() ? ", MISSED" : "");
    b.bars.push_back({row.case_name + ", " + row.run + ", " + row.quantity,
                      std::abs(row.relative_error()), 0, text});
    b.description += b.bars.back().name + " " + text + ". ";
  }
  return b.bars.empty() ? Html{} : bars(b);
}

Html rows(const Field& f) {
  Html html = table(field_rows_table(f, is_firm), "Inputs complete, gated at 15 %");
  html +=
      table(field_rows_table(f, [](const FieldRow& r) { return !r.is_complete && !r.is_estimate; }),
            "Some inputs assumed, not gated");
  html += table(field_rows_table(f, [](const FieldRow& r) { return r.is_estimate; }),
                "Formulas and estimates of others, not observed");
  return html;
}

Html misses(const Field& f) {
  Html html = table(field_rows_table(f, &FieldRow::is_missed), "Rows outside their gate");
  Field differing{.cases = {}, .rows = {}, .verdicts = f.verdicts, .summary = {}};
  std::erase_if(differing.verdicts, &FieldVerdict::agrees);
  html += table(field_verdicts_table(differing), "Other answers on whether a run fits");
  return html.text.empty() ? paragraphs("None.") : html;
}

}  // namespace

Page field_page(const Field& f) {
  Html errors = table(field_summary_table(f), "Absolute errors");
  errors += error_bars(f);
  const auto listed = [](const std::vector<std::string>& lines) {
    return lines.empty() ? Html{} : list(lines);
  };
  return {.title = "Memory in public reports, predicted and observed",
          .subtitle = "",
          .summary = summary(f),
          .sections = {{"Errors", errors},
                       {"Missed", misses(f)},
                       {"Rows", rows(f)},
                       {"Does it fit?",
                        table(field_verdicts_table(f), "Answers, predicted and observed")},
                       {"Remarks", listed(field_remarks(f))},
                       {"Not simulated here", listed(field_left_out(f))},
                       {"Reports", listed(field_sources(f))}},
          .footer = field_count_text(f)};
}

}  // namespace tidegate::page
