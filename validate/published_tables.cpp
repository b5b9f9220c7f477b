#include "validate/published_tables.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "models/base/units.hpp"
#include "sim/report/words.hpp"

namespace tidegate {
namespace {

std::string verdict(const PublishedRow& row) {
  if (!row.gate) return "";
  return row.is_missed() ? fmt::format("MISSED (gate {:.0f} %)", 100 * *row.gate) : "ok";
}

std::string error_text(double error) {
  return fmt::format("{:.{}f} %", 100 * error, error < 0.0005 ? 3 : 1);
}

std::string value_text(const ModelRow& row, double v) {
  if (row.unit == "s") return to_text(Seconds(v));
  if (row.unit == "B") return to_text(Bytes(v));
  if (row.unit == "B/s") return to_text(BytesPerSecond(v));
  return fmt::format("{:.4g}", v) + (row.unit == "years" ? " years" : "");
}

bool belongs(const PublishedRow& row, Sample sample) {
  return sample == Sample::all || row.in_sample == (sample == Sample::in);
}

std::string percent(double error) { return fmt::format("{:+.1f} %", 100 * error); }

}  // namespace

std::string value_text(const PublishedRow& row, double v) {
  if (row.unit == "s") return to_text(Seconds(v));
  if (row.unit == "B") return to_text(Bytes(v));
  return fmt::format("{:.3g}x", v);
}

Table rows_table(const Published& p, std::size_t set, Sample sample) {
  Table table{
      .header = {"case", "variant", "quantity", "predicted", "measured", "error", "sample", ""},
      .rows = {},
      .align = {Align::left, Align::left, Align::left, Align::right, Align::right, Align::right,
                Align::left, Align::left}};
  std::string last;
  for (const PublishedRow& row : p.rows) {
    if (row.set != set || !belongs(row, sample)) continue;
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
    table.rows.push_back(
        {s.what, std::to_string(s.rows), error_text(s.mean), error_text(s.worst), s.worst_row});
  }
  return table;
}

// One line per run: what is predicted, and the largest error of it.
Table models_table(const Published& p) {
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
  return table;
}

Table recalled_table(const Published& p) {
  Table table{.header = {"recalled, not gated", "quantity", "predicted", "recalled", "error"},
              .rows = {},
              .align = {Align::left, Align::left, Align::right, Align::right, Align::right}};
  for (const ModelRow& row : p.model_rows) {
    if (!row.is_recalled) continue;
    table.rows.push_back({row.run, row.quantity, value_text(row, row.predicted),
                          value_text(row, row.published),
                          fmt::format("{:+.1f} %", 100 * row.relative_error())});
  }
  return table;
}

Table coverage_table(const Published& p) {
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
  return table;
}

std::string coverage_note(const Published& p) {
  std::string text = fmt::format(
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

Table misses_table(const Published& p) {
  Table table{
      .header = {"what", "quantity", "predicted", "published", "error", "gate"},
      .rows = {},
      .align = {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right}};
  const auto gate_text = [](const std::optional<double>& gate) {
    return gate ? fmt::format("{:.3g} %", 100 * *gate) : "";
  };
  for (const PublishedRow& row : p.rows) {
    if (!row.is_missed()) continue;
    table.rows.push_back({row.case_name + ", " + row.variant, row.quantity,
                          value_text(row, row.predicted), value_text(row, row.measured),
                          percent(row.relative_error()), gate_text(row.gate)});
  }
  for (const ModelRow& row : p.model_rows) {
    if (!row.is_missed()) continue;
    table.rows.push_back({row.run, row.quantity, value_text(row, row.predicted),
                          value_text(row, row.published), percent(row.relative_error()),
                          gate_text(row.gate)});
  }
  for (const Band& band : p.bands) {
    if (!band.is_missed()) continue;
    table.rows.push_back({band.name, "band", fmt::format("{:.4g}", band.value),
                          fmt::format("{:.4g} to {:.4g}", band.low, band.high), "outside", "band"});
  }
  return table;
}

}  // namespace tidegate
