#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/planner/words.hpp"
#include "sim/plot/chart.hpp"
#include "sim/report/words.hpp"

namespace tidegate::planner {
namespace {

using page::Html;

bool is_on_front(const Comparison& c, std::size_t i) {
  return std::ranges::find(c.front, i) != c.front.end();
}

std::string money(Money m) { return m > 0 ? fmt::format("{:.0f}", m) : "-"; }

Html summary(const Comparison& c) {
  Html html;
  if (c.answer) {
    const Assessment& a = c.machines[*c.answer];
    html +=
        page::figures({{c.budget && !c.days ? "Fastest" : "Cheapest", a.build.name, ""},
                       {"Throughput", number_text(a.tokens_per_second) + " tokens/s", a.layout},
                       {"Time", days_text(a.days()), count_text(c.tokens) + " tokens"},
                       {"Cost of the run", money_text(c, a.costs.total()),
                        money_text(c, c.per_million(a)) + " per million tokens"},
                       {a.bill.rent ? "Rent" : "Purchase",
                        a.bill.rent ? money_text(c, *a.bill.rent) : money_text(c, a.costs.purchase),
                        a.bill.rent ? "an hour" : "once"}});
  }
  std::string text = question_text(c) + "\n" + answer_text(c);
  if (c.is_example) text += "\nPrices are examples, not an offer: edit the catalog.";
  if (c.is_interrupted) text += "\nInterrupted: what was looked at so far.";
  html += page::paragraphs(text);
  return html;
}

Html front_picture(const Comparison& c) {
  Chart::Series front{.name = "front", .points = {}}, behind{.name = "behind it", .points = {}};
  behind.is_joined = false;
  std::string words;
  const std::vector<std::size_t> order = by_cost(c);
  const auto point = [&](std::size_t i) {
    const Assessment& a = c.machines[i];
    const auto number = std::ranges::find(order, i) - order.begin() + 1;
    const std::string title = fmt::format("{}: {}, {}", a.build.name, days_text(a.days()),
                                          money_text(c, a.costs.total()));
    return Chart::Point{a.days(), a.costs.total(), std::to_string(number), title};
  };
  for (const std::size_t i : c.front) {
    front.points.push_back(point(i));
    words += front.points.back().title + ". ";
  }
  for (const std::size_t i : c.trained()) {
    if (is_on_front(c, i)) continue;
    behind.points.push_back(point(i));
  }
  if (front.points.empty()) return {};
  Chart chart{.title = "Cost against time",
              .subtitle = fmt::format("{}, {} tokens", c.scenario, count_text(c.tokens)),
              .description = "On the front: " + words,
              .x_label = "days",
              .y_label = "cost of the run, " + c.currency,
              .series = {std::move(front)}};
  if (!behind.points.empty()) chart.series.push_back(std::move(behind));
  if (c.days) chart.limit = Chart::Line{*c.days, days_text(*c.days)};
  return page::picture(chart);
}

Html machines_table(const Comparison& c) {
  Table t{.header = {"machine", "front", "tokens/s", "days", "cost", "per M tokens", "purchase",
                     "binds (% per 1 % more)"},
          .rows = {},
          .align = {Align::left, Align::left, Align::right, Align::right, Align::right,
                    Align::right, Align::right, Align::left}};
  Table costs{.header = {"machine", "share of purchase", "energy", "drives again", "rent", "kWh",
                         "drive life"},
              .rows = {},
              .align = {}};
  for (const std::size_t i : by_cost(c)) {
    const Assessment& a = c.machines[i];
    t.rows.push_back({fmt::format("{}. {}", t.rows.size() + 1, a.build.name),
                      is_on_front(c, i) ? "yes" : "", number_text(a.tokens_per_second),
                      number_text(a.days()), money(a.costs.total()), number_text(c.per_million(a)),
                      money(a.costs.purchase), binding_text(a)});
    costs.rows.push_back({a.build.name, money(a.costs.capital), money(a.costs.energy),
                          money(a.costs.replacement), money(a.costs.rent),
                          number_text(a.costs.kilowatt_hours), life_text(a)});
  }
  Html html = page::table(
      t, "Machines, cheapest first, numbered as in the picture; money in " + c.currency);
  html += page::table(costs, "What the cost of the run is made of, " + c.currency);
  return html;
}

Html left_out(const Comparison& c) {
  Html html = page::list(not_looked_at(c));
  html += page::paragraphs(layouts_text(c));
  return html;
}

Html upgrades_table(const Comparison& c) {
  Table t{
      .header = {"more", "of", "tokens/s", "days saved", "price", "tokens/s per 1000"},
      .rows = {},
      .align = {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right}};
  for (const Upgrade& s : c.upgrades) {
    t.rows.push_back({s.what, c.machines[s.from].build.name, fmt::format("{:+.4g}", s.gain),
                      fmt::format("{:.3g}", s.days), money(s.price),
                      s.per_thousand ? fmt::format("{:.3g}", *s.per_thousand) : "-"});
  }
  return page::table(t, "Gains, most per 1000 " + c.currency + " of purchase first");
}

Html sensitivity(const Comparison& c) {
  if (!c.answer) return {};
  const Assessment& a = c.machines[*c.answer];
  page::Bars b{.title = "What 1 % more of a resource would shorten an iteration by, percent: " +
                        a.build.name,
               .description = "",
               .bars = {}};
  for (const auto& [name, value] : a.binding) {
    const double v = std::max(0.0, value);
    b.bars.push_back({name, v, 0, fmt::format("{:.2f} %", v)});
    b.description += fmt::format("{} {:.2f} %. ", name, v);
  }
  return page::bars(b);
}

Html policies(const Comparison& c, const std::string& scenario) {
  Html html;
  for (const std::size_t i : c.front) {
    const Assessment& a = c.machines[i];
    Html body = page::paragraphs(a.policy + "; " + a.layout + ".\n" +
                                 (a.note.empty() ? "" : "Note: " + a.note + "."));
    body += page::preformatted(simulate_command(c, a, scenario));
    html += page::details(a.build.name, body);
  }
  return html;
}

Html assumptions(const Comparison& c) {
  Table terms{.header = {"term", "value"}, .rows = {}, .align = {}};
  terms.rows = {{"years of use", number_text(c.terms.years)},
                {"part of the time in use", number_text(c.terms.utilization)},
                {"a kilowatt-hour, " + c.currency, number_text(c.terms.energy)},
                {"PUE", number_text(c.terms.pue)}};
  Table t{.header = {"key of the catalog", "value", "origin"},
          .rows = {},
          .align = {Align::left, Align::left, Align::left}};
  for (const Provenance& p : c.sources)
    t.rows.push_back({p.key, p.value, (p.assumed ? "assumed: " : "") + p.source});
  Html html = page::table(terms, "On what everything is charged");
  html +=
      page::table(t, fmt::format("Catalog {} of {}, money in {}", c.catalog, c.date, c.currency));
  if (c.answer) {
    html += page::details("Assumed of " + c.machines[*c.answer].build.name,
                          page::list(c.machines[*c.answer].assumptions));
  }
  return html;
}

}  // namespace

page::Page comparison_page(const Comparison& c, const std::string& scenario) {
  return {.title = "Machines for " + c.scenario,
          .subtitle = fmt::format("catalog {} of {}", c.catalog, c.date),
          .summary = summary(c),
          .sections = {{"Cost against time", front_picture(c)},
                       {"Machines", machines_table(c)},
                       {"What more would gain", upgrades_table(c)},
                       {"Sensitivity", sensitivity(c)},
                       {"Policies of the front", policies(c, scenario)},
                       {"Not in the table", left_out(c)},
                       {"Assumptions", assumptions(c)}},
          .footer = "tidegate " + c.revision};
}

}  // namespace tidegate::planner
