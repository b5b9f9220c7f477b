#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/base/units.hpp"
#include "sim/report/table.hpp"
#include "sim/report/words.hpp"
#include "validate/bands_text.hpp"
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

Table rows_table(const Published& p, std::size_t set) {
  Table table{
      .header = {"case", "variant", "quantity", "predicted", "measured", "error", "sample", ""},
      .rows = {},
      .align = {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right,
                Align::left, Align::left}};
  std::string last;
  for (const PublishedRow& row : p.rows) {
    if (row.set != set) continue;
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

std::string error_text(double error) {
  return fmt::format("{:.{}f} %", 100 * error, error < 0.0005 ? 3 : 1);
}

std::string summary_text(const Published& p) {
  Table table{.header = {"absolute error of", "rows", "mean", "worst", "where"},
              .rows = {},
              .align = {Align::left, Align::right, Align::right, Align::right, Align::left}};
  for (const PublishedSummary& s : p.summary) {
    table.rows.push_back(
        {s.what, std::to_string(s.rows), error_text(s.mean), error_text(s.worst), s.worst_row});
  }
  return table.rows.empty() ? "" : to_text(table);
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

std::string value_text(const ModelRow& row, double v) {
  if (row.unit == "s") return to_text(Seconds(v));
  if (row.unit == "B") return to_text(Bytes(v));
  if (row.unit == "B/s") return to_text(BytesPerSecond(v));
  return fmt::format("{:.4g}", v) + (row.unit == "years" ? " years" : "");
}

// One line per run: what is predicted, and the largest error of it.
std::string models_text(const Published& p) {
  const std::vector<std::string> quantities = {"micro_batch", "activations",     "forward",
                                               "step",        "write_bandwidth", "lifetime"};
  Table table{.header = {"run", "micro-batch", "activations", "forward", "step", "write", "life",
                         "largest error", ""},
              .rows = {},
              .align = std::vector<Align>(9, Align::right)};
  table.align.front() = table.align.back() = Align::left;
  std::string last;
  double worst = 0;
  for (const ModelRow& row : p.model_rows) {
    if (row.is_recalled) continue;
    if (row.run != last) {
      table.rows.push_back({row.run, "", "", "", "", "", "", "", "ok"});
      worst = 0;
    }
    last = row.run;
    std::vector<std::string>& line = table.rows.back();
    const auto at = std::ranges::find(quantities, row.quantity) - quantities.begin();
    line[static_cast<std::size_t>(at) + 1] = value_text(row, row.predicted);
    worst = std::max(worst, std::abs(row.relative_error()));
    line[7] = fmt::format("{:.3f} %", 100 * worst);
    if (row.is_missed()) line[8] = fmt::format("MISSED (gate {:.3g} %)", 100 * *row.gate);
  }
  return to_text(table);
}

std::string recalled_text(const Published& p) {
  Table table{.header = {"recalled, not gated", "quantity", "predicted", "recalled", "error"},
              .rows = {},
              .align = {Align::left, Align::left, Align::right, Align::right, Align::right}};
  for (const ModelRow& row : p.model_rows) {
    if (!row.is_recalled) continue;
    table.rows.push_back({row.run, row.quantity, value_text(row, row.predicted),
                          value_text(row, row.published),
                          fmt::format("{:+.1f} %", 100 * row.relative_error())});
  }
  return table.rows.empty() ? "" : "\n" + to_text(table);
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

std::string coverage_text(const Published& p) {
  if (p.coverage.empty()) return "";
  Table table{
      .header = {"case", "variant", "nine in ten within", "measured", "", "sample"},
      .rows = {},
      .align = {Align::left, Align::left, Align::right, Align::right, Align::left, Align::left}};
  for (const PublishedRow& row : p.rows) {
    const auto range = row.range();
    if (!range) continue;
    table.rows.push_back({row.case_name, row.variant,
                          to_text(Seconds(range->first)) + " to " + to_text(Seconds(range->second)),
                          value_text(row, row.measured), row.is_inside() ? "inside" : "OUTSIDE",
                          row.in_sample ? "in" : "out"});
  }
  std::string text = to_text(table);
  text += fmt::format(
      "Beside its profile's uncertainties, each interval has what the models miss in the other "
      "cases;\nover all of them, out of sample, that is {:.1f} %.\n",
      100 * p.model_deviation.value_or(0));
  for (const PublishedCoverage& c : p.coverage) {
    text += fmt::format(
        "{} of {} measured iteration times, {}, lie within their interval; nine in ten would "
        "be right.\n",
        c.inside, c.rows, c.what);
  }
  return text;
}

std::string gates_text(const Published& p) {
  return fmt::format("{} of {} gated rows hold.\n", p.gated - p.missed, p.gated);
}

}  // namespace

namespace {

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
  parts.insert(parts.end(), {brief_bands_text(p), summary_text(p), gates_text(p)});
  return join(parts, "\n");
}

std::string to_text(const Published& p) {
  std::vector<std::string> parts;
  if (!p.rows.empty()) parts.push_back(runs_text(p));
  if (!p.model_rows.empty()) {
    parts.push_back(fmt::format("{}\npublished: {}\n\n{}{}", p.model_title, p.model_source,
                                models_text(p), recalled_text(p)));
  }
  if (!p.bands.empty()) parts.push_back(bands_text(p));
  if (!p.coverage.empty()) parts.push_back(coverage_text(p));
  parts.insert(parts.end(), {summary_text(p), gates_text(p)});
  return join(parts, "\n");
}

}  // namespace tidegate
