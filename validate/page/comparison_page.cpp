#include "validate/page/comparison_page.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "sim/page/report_page.hpp"
#include "sim/report/memory_series.hpp"
#include "sim/report/period.hpp"

namespace tidegate::page {
namespace {

constexpr double mib = 1024. * 1024;

// An absolute error.
std::string share(std::optional<double> error) {
  return error ? fmt::format("{:.1f} %", 100 * *error) : "none";
}

Html summary(const Comparison& c) {
  Html html =
      figures({{"Predicted", to_text(c.step.predicted),
                c.interval ? fmt::format("nine in ten within {} to {}", to_text(c.interval->low),
                                         to_text(c.interval->high))
                           : ""},
               {"Measured", to_text(c.step.measured), "an iteration of the steady period"},
               {"Error", percent(c.step.error()), fmt::format("gate {:.0f} %", 100 * c.gate)},
               {"Verdict", name_of(c.verdict), ""},
               {"Lateness", fmt::format("{:.1f} %", 100 * c.floor),
                "of the measured iteration, by threads that woke late"}});
  html += list(c.remarks);
  return html;
}

// Measured, and over it, darker, predicted.
Html pairs(const std::string& title, const char* what, const std::vector<Group>& groups) {
  Bars b{
      .title = title + ": measured, and over it, darker, predicted", .description = {}, .bars = {}};
  Table t{.header = {what, "predicted", "measured", "error", "tasks"}, .rows = {}, .align = {}};
  constexpr std::size_t most_bars = 12;
  for (const Group& g : groups) {
    const std::string error = percent(g.time.error());
    if (b.bars.size() < most_bars) {
      b.bars.push_back({g.name, g.time.measured.value(), g.time.predicted.value(), error});
      b.description += g.name + " " + error + ". ";
    }
    t.rows.push_back({g.name, to_text(g.time.predicted), to_text(g.time.measured), error,
                      g.tasks > 0 ? std::to_string(g.tasks) : ""});
  }
  Html html = bars(b);
  html += table(t, title);
  return html;
}

Html phases(const Comparison& c) {
  std::vector<Group> groups;
  for (std::size_t p = 0; p < phase_count; ++p) {
    const Pair& time = c.phases[p];
    if (time.predicted == Seconds(0) && time.measured == Seconds(0)) continue;
    groups.push_back({name_of(static_cast<Phase>(p)), 0, time});
  }
  return pairs("Phases of an iteration", "phase", groups);
}

std::vector<MemorySeries> series_of(const Plan& plan, const Timeline& timeline) {
  const std::vector<std::optional<AllocatorHistory>> none(plan.pools.size());
  return memory_series(plan, timeline, steady_period(iterations_of(plan, timeline)), none);
}

double length_of(const MemorySeries& s) {
  return s.at.size() < 2 ? 0 : to_seconds(s.at.back() - s.at.front()).value();
}

// Over `length`, the longer of two periods: what ends earlier holds nothing from there on.
Html memory_area(const char* which, const MemorySeries& s, double length, double most) {
  Area a{.title = fmt::format("{}: {}", s.pool, which),
         .description = {},
         .x_label = "seconds of the steady period",
         .y_label = "MiB",
         .x = {},
         .layers = {}};
  for (const Instant at : s.at) a.x.push_back(to_seconds(at - s.at.front()).value());
  const bool is_shorter = length > length_of(s);
  if (is_shorter) a.x.insert(a.x.end(), {length_of(s), length});
  for (const MemorySeries::Owner& owner : s.owners) {
    Area::Layer layer{owner.name, {}};
    for (const std::int64_t bytes : owner.bytes)
      layer.y.push_back(static_cast<double>(bytes) / mib);
    if (is_shorter) layer.y.insert(layer.y.end(), {0, 0});
    a.description += fmt::format("{} up to {:.1f} MiB. ", owner.name, std::ranges::max(layer.y));
    a.layers.push_back(std::move(layer));
  }
  a.limit = most / mib;
  a.limit_label = "predicted peak";
  return area(a);
}

// Of ranks that are alike the first; pools of storage have no time to show.
Html memory(const Plan& plan, const Timeline& predicted, const Timeline& measured,
            const Comparison& c) {
  Html html;
  const std::vector<MemorySeries> expected = series_of(plan, predicted),
                                  seen = series_of(plan, measured);
  bool has_gpu = false;
  for (const MemorySeries& e : expected) {
    const bool is_gpu = e.pool.starts_with("gpu");
    if (is_gpu && has_gpu) continue;
    has_gpu |= is_gpu;
    const auto m = std::ranges::find(seen, e.pool, &MemorySeries::pool);
    const auto peak = std::ranges::find(c.pools, e.pool, &PoolPeak::name);
    if (m == seen.end() || peak == c.pools.end()) continue;
    const double length = std::max(length_of(e), length_of(*m));
    html += memory_area("predicted", e, length, static_cast<double>(peak->predicted));
    html += memory_area("measured", *m, length, static_cast<double>(peak->predicted));
  }
  Table t{
      .header = {"memory", "predicted peak", "at", "measured peak", "at"}, .rows = {}, .align = {}};
  for (const PoolPeak& p : c.pools) {
    t.rows.push_back({p.name, fmt::format("{} B", p.predicted), to_text(p.predicted_at),
                      fmt::format("{} B", p.measured), to_text(p.measured_at)});
  }
  html += table(t, "Peaks, and when from the run's start");
  return html;
}

Html timelines(const Plan& plan, const Timeline& predicted, const Timeline& measured) {
  Lanes expected = lanes_of(plan, predicted), seen = lanes_of(plan, measured);
  expected.title = "Predicted: rank 0 and what ranks share";
  seen.title = "Measured: rank 0 and what ranks share";
  expected.description = "Predicted. " + expected.description;
  seen.description = "Measured. " + seen.description;
  Html html = lanes(expected);
  html += lanes(seen);
  return html;
}

Html suspects(const Comparison& c) {
  if (c.suspects.empty()) return paragraphs("No device is off as a whole.");
  Table t{.header = {"device", "measured over predicted", "spread", "tasks", "of the iteration"},
          .rows = {},
          .align = {}};
  for (const Suspect& s : c.suspects) {
    t.rows.push_back({s.device, fmt::format("{:.2f}", s.ratio), fmt::format("{:.2f}", s.spread),
                      std::to_string(s.tasks), to_text(s.exposed)});
  }
  return table(t, "Devices whose rate in the profile is wrong");
}

Html order(const Comparison& c) {
  Html html = c.reordered.empty()
                  ? paragraphs("The predicted tasks ran in the predicted order on every lane.")
                  : paragraphs("Other tasks ran, or in another order, on:");
  html += list(c.reordered);
  if (c.choices > 0) {
    html += paragraphs(fmt::format("{} of {} choices that hang on time came out otherwise.",
                                   c.other_choices, c.choices));
  }
  return html;
}

// Of the cases that have one.
Html errors(const std::vector<std::pair<std::string, std::optional<double>>>& cases) {
  Bars b{.title = "Absolute error of the iteration", .description = {}, .bars = {}};
  for (const auto& [name, error] : cases) {
    if (!error) continue;
    b.bars.push_back({name, std::abs(*error), 0, percent(error)});
    b.description += name + " " + percent(error) + ". ";
  }
  return bars(b);
}

}  // namespace

Page comparison_page(const std::string& scenario, const std::string& profile, const Plan& plan,
                     const Timeline& predicted, const Timeline& measured, const Comparison& c) {
  return {.title = scenario + ": predicted and measured",
          .subtitle = profile,
          .summary = summary(c),
          .sections = {{"Suspects", suspects(c)},
                       {"Phases", phases(c)},
                       {"Tasks", pairs("Tasks by name, sums of an iteration", "tasks", c.kinds)},
                       {"Critical paths", pairs("Critical paths by name of task", "task", c.path)},
                       {"Memory", memory(plan, predicted, measured, c)},
                       {"Timelines", timelines(plan, predicted, measured)},
                       {"Order", order(c)}},
          .footer = "tidegate validate run"};
}

Page suite_page(const Suite& suite) {
  std::vector<std::pair<std::string, std::optional<double>>> cases;
  for (const SuiteRow& row : suite.rows) cases.emplace_back(row.name, row.comparison.step.error());
  return {
      .title = "Suite: predicted and measured",
      .subtitle = suite.pace == Pace::paced ? "paced rig" : "native rig",
      .summary = figures(
          {{"Mean error", share(suite.mean()), fmt::format("gate {:.0f} %", 100 * suite.mean_gate)},
           {"Worst error", share(suite.worst()),
            fmt::format("gate {:.0f} %", 100 * suite.worst_gate)},
           {"Conclusive", fmt::format("{} of {}", suite.conclusive(), suite.rows.size()), ""}}),
      .sections = {{"Errors", errors(cases)}, {"Cases", table(cases_table(suite), "Iterations")}},
      .footer = "tidegate validate suite"};
}

Page native_page(const NativeSuite& suite) {
  std::vector<std::pair<std::string, std::optional<double>>> cases;
  for (const NativeRow& row : suite.rows) {
    if (suite.is_conclusive(row)) cases.emplace_back(row.name, row.error());
  }
  const NativeScore score = suite.score(), forecast = suite.forecast_score();
  return {
      .title = "Native suite: predicted and measured at full speed",
      .subtitle = suite.hardware.empty() ? "rates measured between the runs" : suite.hardware,
      .summary = figures(
          {{"Median error", share(score.median_error),
            fmt::format("gate {:.0f} %, worst {}", 100 * suite.gate, share(score.worst_error))},
           {"Forecast", share(forecast.median_error),
            "median error with the rates before all runs, worst " + share(forecast.worst_error)},
           {"Verdict", name_of(suite.verdict()),
            fmt::format("{} of {} cases conclusive", suite.conclusive(), suite.rows.size())},
           {"Inside", fmt::format("{} of {}", score.inside, score.all),
            "clean runs within their interval, nine in ten expected"},
           {"Floor", share(suite.repeat_error()), "by which two runs of one thing differ"}}),
      .sections = {{"Errors", errors(cases)},
                   {"Cases", table(cases_table(suite), "Iterations")},
                   {"Rates", table(rates_table(suite), "Rates of this machine")}},
      .footer = "tidegate validate suite --native"};
}

}  // namespace tidegate::page
