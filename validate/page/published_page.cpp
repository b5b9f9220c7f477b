#include "validate/page/published_page.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/base/units.hpp"
#include "validate/bands_text.hpp"
#include "validate/published_tables.hpp"

namespace tidegate::page {
namespace {

std::string percent(double fraction) { return fmt::format("{:+.1f} %", 100 * fraction); }

Html summary(const Published& p) {
  std::vector<Figure> list = {{"Gates that hold",
                               fmt::format("{} of {}", p.gated - p.missed, p.gated),
                               fmt::format("{} missed", p.missed)}};
  for (const PublishedSummary& s : p.summary) {
    if (list.size() == 4) break;
    list.push_back(
        {s.what, fmt::format("{:.1f} %", 100 * s.mean),
         fmt::format("mean error of {}; worst {:.1f} %, {}", s.rows, 100 * s.worst, s.worst_row)});
  }
  Html html = figures(list);
  html += paragraphs(
      "In sample: a quantity that set a value of the machine's profile, so that meeting it proves "
      "little. Out of sample: one that did not.");
  return html;
}

bool is_iteration(const PublishedRow& row) { return row.quantity == "iteration"; }

// Absolute errors of iteration times, each with its sign in words.
Html error_bars(const Published& p, bool in_sample) {
  Bars b{.title = std::string("Error of each iteration time, ") +
                  (in_sample ? "in sample" : "out of sample"),
         .description = {},
         .bars = {}};
  for (const PublishedRow& row : p.rows) {
    if (!is_iteration(row) || row.in_sample != in_sample) continue;
    const std::string text = percent(row.relative_error()) + (row.is_missed() ? ", MISSED" : "");
    b.bars.push_back({row.case_name + " " + row.variant, std::abs(row.relative_error()), 0, text});
    b.description += b.bars.back().name + " " + text + ". ";
  }
  return b.bars.empty() ? Html{} : bars(b);
}

Html errors(const Published& p) {
  Html html = table(summary_table(p), "Absolute errors");
  html += error_bars(p, false);
  html += error_bars(p, true);
  return html;
}

// Where prediction and measurement are the same lies a line.
Html scatter(const Published& p) {
  Curves c{.title = "Predicted over measured iteration times",
           .description = "On the line both are the same.",
           .x_label = "measured seconds",
           .y_label = "predicted seconds",
           .series = {{.name = "out of sample", .points = {}, .curve = {}},
                      {.name = "in sample", .points = {}, .curve = {}}},
           .x_is_log = true,
           .y_is_log = true};
  double least = INFINITY, most = 0;
  for (const PublishedRow& row : p.rows) {
    if (!is_iteration(row)) continue;
    c.series[row.in_sample ? 1 : 0].points.push_back(
        {row.measured, row.predicted,
         fmt::format("{} {}: {} predicted, {} measured, {}", row.case_name, row.variant,
                     value_text(row, row.predicted), value_text(row, row.measured),
                     percent(row.relative_error()))});
    least = std::min({least, row.measured, row.predicted});
    most = std::max({most, row.measured, row.predicted});
  }
  std::erase_if(c.series, [](const Curves::Series& s) { return s.points.empty(); });
  if (c.series.empty()) return {};
  c.series.front().curve = {{least, least}, {most, most}};
  return curves(c);
}

Html misses(const Published& p) {
  const Table t = misses_table(p);
  return t.rows.empty() ? paragraphs("None.") : table(t, "Rows outside their gate");
}

Html run_set(const Published& p, std::size_t set) {
  const RunSet& s = p.sets[set];
  Html html =
      paragraphs(fmt::format("Measured: {}\nProfile: {}, one for all rows", s.source, s.profile));
  html += table(rows_table(p, set, Sample::out), "Out of sample");
  html += table(rows_table(p, set, Sample::in), "In sample: these set values of the profile");
  if (!s.note.empty()) html += paragraphs(s.note);
  return html;
}

Html models(const Published& p) {
  if (p.model_rows.empty()) return {};
  Html html = paragraphs("Published: " + p.model_source);
  html += table(models_table(p), "The same equations here");
  html += table(recalled_table(p), "Recalled, not gated");
  return html;
}

Html bands(const Published& p) {
  if (p.bands.empty()) return {};
  Html html = table(bands_table(p), "How a system behaves, and where it should lie");
  html += list(band_claims(p));
  return html;
}

Html intervals(const Published& p) {
  if (p.coverage.empty()) return {};
  Html html = table(coverage_table(p), "Nine in ten measured times should lie within");
  html += paragraphs(coverage_note(p));
  return html;
}

}  // namespace

Page published_page(const Published& p) {
  Page page{.title = "Published figures, predicted and measured",
            .subtitle = "",
            .summary = summary(p),
            .sections = {{"Errors", errors(p)},
                         {"Missed", misses(p)},
                         {"Predicted and measured", scatter(p)},
                         {"Intervals", intervals(p)}},
            .footer = gates_text(p)};
  for (std::size_t set = 0; set < p.sets.size(); ++set)
    page.sections.push_back({p.sets[set].title, run_set(p, set)});
  page.sections.push_back({p.model_title, models(p)});
  page.sections.push_back({p.band_title, bands(p)});
  if (!p.ablation.empty())
    page.sections.push_back({"Principles, one by one", preformatted(p.ablation)});
  page.sections.push_back({"Notes", p.notes.empty() ? Html{} : list(p.notes)});
  return page;
}

}  // namespace tidegate::page
