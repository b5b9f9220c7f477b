#include <fmt/core.h>

#include "sim/report/table.hpp"
#include "sim/report/words.hpp"
#include "validate/bands_text.hpp"
#include "validate/published_tables.hpp"

namespace tidegate {
namespace {

// Nothing where the table has no rows.
std::string text_of(const Table& table) { return table.rows.empty() ? "" : to_text(table); }

// The row of one quantity of the run that `at` belongs to, or none.
const PublishedRow* find_row(const Published& p, const PublishedRow& at,
                             std::string_view quantity) {
  for (const PublishedRow& row : p.rows) {
    if (row.case_name == at.case_name && row.variant == at.variant && row.quantity == quantity)
      return &row;
  }
  return nullptr;
}

std::string set_text(const Published& p, std::size_t set) {
  const RunSet& s = p.sets[set];
  std::string text = fmt::format("{}\nmeasured: {}\nprofile:  {}, one for all rows\n\n", s.title,
                                 s.source, s.profile);
  text += to_text(rows_table(p, set));
  if (!s.note.empty()) text += "  " + wrap(s.note, 96, 2) + "\n";
  return text;
}

std::string runs_text(const Published& p) {
  std::string text;
  for (std::size_t set = 0; set < p.sets.size(); ++set) {
    text += (set > 0 ? "\n" : "") + set_text(p, set);
  }
  if (!p.ablation.empty()) text += "\n" + p.ablation;
  if (!p.notes.empty()) text += "\nNotes\n";
  for (const std::string& note : p.notes) text += "  " + wrap(note, 96, 4) + "\n";
  return text + "  in: a quantity that set a value of the profile. out: one that did not.\n";
}

std::string brief_text(const Published& p, std::size_t set) {
  Table table{.header = {"case", "run", "predicted", "measured", "error", "speed-up", "measured"},
              .rows = {},
              .align = {Align::left, Align::left, Align::right, Align::right, Align::right,
                        Align::right, Align::right}};
  for (const PublishedRow& row : p.rows) {
    if (row.set != set || row.quantity != "iteration") continue;
    const PublishedRow* speedup = find_row(p, row, "speedup");
    table.rows.push_back({row.case_name, row.variant + (row.in_sample ? " (calibrated)" : ""),
                          value_text(row, row.predicted), value_text(row, row.measured),
                          fmt::format("{:+.1f} %", 100 * row.relative_error()),
                          speedup ? value_text(*speedup, speedup->predicted) : "",
                          speedup ? value_text(*speedup, speedup->measured) : ""});
  }
  if (table.rows.empty()) return "";
  return fmt::format("{}, time of an iteration\nmeasured: {}\n\n{}", p.sets[set].title,
                     p.sets[set].source, to_text(table));
}

}  // namespace

std::string to_brief_text(const Published& p) {
  std::vector<std::string> parts;
  for (std::size_t set = 0; set < p.sets.size(); ++set) parts.push_back(brief_text(p, set));
  parts.insert(parts.end(), {brief_bands_text(p), text_of(summary_table(p)), gates_text(p)});
  return join(parts, "\n");
}

std::string to_text(const Published& p) {
  std::vector<std::string> parts;
  if (!p.rows.empty()) parts.push_back(runs_text(p));
  if (!p.model_rows.empty()) {
    const std::string recalled = text_of(recalled_table(p));
    parts.push_back(fmt::format("{}\npublished: {}\n\n{}{}", p.model_title, p.model_source,
                                to_text(models_table(p)),
                                (recalled.empty() ? "" : "\n") + recalled));
  }
  if (!p.bands.empty()) parts.push_back(bands_text(p));
  if (!p.coverage.empty()) parts.push_back(to_text(coverage_table(p)) + coverage_note(p));
  parts.insert(parts.end(), {text_of(summary_table(p)), gates_text(p)});
  return join(parts, "\n");
}

}  // namespace tidegate
