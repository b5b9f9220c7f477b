#include "sim/search/tune_page.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/plot/chart.hpp"
#include "sim/report/words.hpp"
#include "sim/search/grid.hpp"
#include "sim/search/pool.hpp"

namespace tidegate {
namespace {

using page::Html;

constexpr double gib = 1024. * 1024 * 1024;
constexpr std::size_t most_rows = 200;

std::string percent(double fraction) { return fmt::format("{:+.1f} %", 100 * fraction); }

std::string sets_text(const Candidate& c) {
  std::string text;
  for (const auto& [key, value] : c.sets) text += (text.empty() ? "" : " ") + key + "=" + value;
  return text.empty() ? "as it is" : text;
}

Html command(const TuneReport& r, const Candidate& c) {
  std::string text = r.command;
  for (const auto& [key, value] : c.sets) text += " \\\n    --set " + shell_word(key + "=" + value);
  return page::preformatted(text);
}

Html summary(const TuneReport& r) {
  const Tuning& t = r.tuning;
  if (!t.best) return page::paragraphs("Nothing that was simulated fits.");
  const Trial& best = *t.best->trial;
  const bool has_today = t.today.trial.has_value();
  std::vector<page::Figure> figures = {
      {"Best iteration", to_text(best.iteration_time),
       has_today ? percent(best.pace() / t.today.trial->pace() - 1) + " of today" : ""},
      {"Throughput", number_text(best.tokens_per_second) + " tokens/s", ""},
      {"Changes", std::to_string(t.best->changes.size()), join(t.best->changes, ", ")}};
  if (!r.is_grid) {
    figures.push_back({"Bound", to_text(t.bound),
                       t.is_interrupted ? "of those looked at"
                       : t.is_proved    ? "none is faster: proved"
                                        : "no choice takes less; not proved that one does"});
  }
  Html html = page::figures(figures);
  if (t.is_interrupted) html += page::paragraphs("Interrupted: the best so far.");
  html += page::paragraphs(
      fmt::format("Times that differ by less than {:g} % are not told apart.", 100 * t.margin));
  html += command(r, *t.best);
  if (t.simplest && t.simplest->changes.size() < t.best->changes.size()) {
    html += page::paragraphs(fmt::format("Within that of the best, with the fewest changes: {}.",
                                         to_text(t.simplest->trial->iteration_time)));
    html += command(r, *t.simplest);
  }
  return html;
}

Html effects(const TuneReport& r) {
  page::Bars b{.title = "How much longer an iteration is without each change of the best",
               .description = "",
               .bars = {}};
  Table idle{.header = {"choice", "alternative", "of it"},
             .rows = {},
             .align = {Align::left, Align::left, Align::right}};
  for (const Tuning::Effect& e : r.tuning.effects) {
    const std::string value = e.trouble.empty() ? percent(e.change) : e.trouble;
    if (!e.is_changed || !e.trouble.empty()) {
      idle.rows.push_back({e.axis, e.sets, value});
      continue;
    }
    const std::size_t dot = e.axis.rfind('.');
    const std::string name = dot == std::string::npos ? e.axis : e.axis.substr(dot + 1);
    b.bars.push_back({name, std::max(0.0, e.change), 0, value});
    b.description += name + " " + value + ". ";
  }
  Html html = page::bars(b);
  html += page::table(idle, "Other choices, against the best");
  return html;
}

Html distance(const TuneReport& r) {
  const Tuning& t = r.tuning;
  if (!t.best || r.is_grid) return {};
  const Bound& own = t.best->screening.bound;
  page::Bars b{.title = "How far from what cannot be beaten",
               .description = "",
               .bars = {{"best", t.best->trial->iteration_time.value(), 0,
                         to_text(t.best->trial->iteration_time)},
                        {"bound of the best", own.time.value(), 0,
                         to_text(own.time) + ", " + own.limited_by},
                        {"bound of the search", t.bound.value(), 0, to_text(t.bound)}}};
  if (t.today.trial) {
    b.bars.insert(b.bars.begin(), {"today", t.today.trial->iteration_time.value(), 0,
                                   to_text(t.today.trial->iteration_time)});
  }
  for (const page::Bars::Bar& bar : b.bars) b.description += bar.name + " " + bar.value_text + ". ";
  Html html = page::bars(b);
  const Tuning::Counts& n = t.counts;
  html += page::paragraphs(fmt::format(
      "{:.4g} combinations, {} crossed: {} are no configurations, {} cannot fit, {} cannot win, {} "
      "are open. {} screened, {} simulated, {} of them fit.",
      n.space, n.crossed, n.refused, n.cannot_fit, n.cannot_win, n.open, n.screened, n.simulated,
      n.fitting));
  return html;
}

Bytes gpu_memory(const Candidate& c) {
  Bytes most;
  for (const Need& need : c.trial->needs) {
    if (need.is_gpu) most = std::max(most, need.bytes);
  }
  return most;
}

// Time against memory: what needs least for its time is joined.
Html memory_picture(const TuneReport& r) {
  std::vector<const Candidate*> fitting;
  for (const Candidate& c : r.tuning.all) {
    if (c.is_acceptable()) fitting.push_back(&c);
  }
  std::ranges::stable_sort(fitting, {}, [](const Candidate* c) {
    return std::pair(gpu_memory(*c), c->trial->iteration_time);
  });
  Chart::Series front{.name = "least memory for its time", .points = {}};
  Chart::Series rest{.name = "other", .points = {}, .is_joined = false};
  double least = INFINITY;
  for (const Candidate* c : fitting) {
    const double time = c->trial->iteration_time.value();
    const bool is_front = time < least;
    least = std::min(least, time);
    (is_front ? front : rest)
        .points.push_back({gpu_memory(*c) / Bytes(gib), time, "", sets_text(*c)});
  }
  if (fitting.size() < 2) return {};
  Chart chart{
      .title = "Iteration time against GPU memory",
      .subtitle = "everything that was simulated and fits",
      .description = fmt::format("{} configurations; {} of them need least memory for their time.",
                                 fitting.size(), front.points.size()),
      .x_label = "GiB of the fullest GPU",
      .y_label = "seconds",
      .series = {std::move(front)}};
  if (!rest.points.empty()) chart.series.push_back(std::move(rest));
  return page::picture(chart);
}

Html candidates(const TuneReport& r) {
  Table t{.header = {"configuration", "iteration", "to the best", "GPU memory", ""},
          .rows = {},
          .align = {Align::left, Align::right, Align::right, Align::right, Align::left}};
  for (const Candidate& c : r.is_grid ? r.tuning.all : r.tuning.runners_up) {
    if (t.rows.size() == most_rows || !r.tuning.best) break;
    t.rows.push_back({sets_text(c), c.trial ? to_text(c.trial->iteration_time) : "-",
                      c.trial ? percent(slower_than_best(r.tuning, c)) : "-",
                      c.trial ? to_text(gpu_memory(c)) : "-", trouble_of(c)});
  }
  return page::table(t, r.is_grid ? "Every combination" : "Best of other choices");
}

Html why(const TuneReport& r) {
  if (r.why_best.empty()) return {};
  Table t{.header = {"", "today", "best"}, .rows = {}, .align = {}};
  const auto add = [&](const std::vector<Explanation::Shift>& shifts, const char* words) {
    for (const Explanation::Shift& s : shifts)
      t.rows.push_back({s.name + words, to_text(s.before), to_text(s.after)});
  };
  add(r.why_best.front().phases, "");
  add(r.why_best.front().exposed, ", exposed");
  return page::table(t, "Where the time of an iteration goes");
}

}  // namespace

page::Page tune_page(const TuneReport& r) {
  return {.title = "Search for " + r.scenario,
          .subtitle = r.profile,
          .summary = summary(r),
          .sections = {{"What each change gains", effects(r)},
                       {"Why", why(r)},
                       {"Distance to the bound", distance(r)},
                       {"Time and memory", memory_picture(r)},
                       {r.is_grid ? "Grid" : "Runners-up", candidates(r)}},
          .footer = "tidegate " + r.revision};
}

}  // namespace tidegate
