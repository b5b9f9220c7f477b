#include "sim/page/report_page.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/report/kin.hpp"
#include "sim/report/verdict.hpp"
#include "sim/report/words.hpp"

namespace tidegate::page {
namespace {

constexpr double gib = 1024. * 1024 * 1024;
constexpr std::size_t wide = 10000;  // no line breaks

Html summary(const Report& r) {
  std::vector<Figure> all = {
      {"Iteration", to_text(r.iteration_time),
       r.range ? fmt::format("nine in ten within {} to {}", to_text(r.range->low),
                             to_text(r.range->high))
               : ""},
      {"Throughput", fmt::format("{} tokens/s", number_text(r.tokens_per_second)), ""},
      {"Per GPU", to_text(r.model_rate_per_gpu), "6 · parameters · tokens"},
      {"Fits", r.fits ? "yes" : "no",
       r.fits ? "" : "times are those of a machine with enough memory"},
      {"Bound", to_text(r.bound.time), "no schedule is faster: " + r.bound.limited_by}};
  Html html = figures(all);
  html += paragraphs(verdict_text(r, wide));
  return html;
}

Html phases(const Report& r) {
  Bars bars_of{.title = "Where an iteration goes", .description = "", .bars = {}};
  Table t{.header = {"phase", "time", "share"}, .rows = {}, .align = {}};
  for (std::size_t p = 0; p < phase_count; ++p) {
    if (r.phases[p] == Seconds(0)) continue;
    const std::string name = name_of(static_cast<Phase>(p));
    const std::string share = percent_text(share_of(r.phases[p], r.iteration_time));
    bars_of.bars.push_back({name, r.phases[p].value(), 0, to_text(r.phases[p]) + ", " + share});
    bars_of.description += name + " " + share + ". ";
    t.rows.push_back({name, to_text(r.phases[p]), share});
  }
  t.rows.push_back({"first iteration", to_text(r.first_iteration_time), ""});
  Html html = bars(bars_of);
  html +=
      table(t, "Phases, mean of the last " + std::to_string(r.steady_iterations) + " iterations");
  return html;
}

const Report::Pool* pool_of(const Report& r, const std::string& name) {
  const auto at = std::ranges::find(r.pools, name, &Report::Pool::name);
  return at == r.pools.end() ? nullptr : &*at;
}

Html memory_over_time(const Report& r, const MemorySeries& series) {
  const Report::Pool* pool = pool_of(r, series.pool);
  Area a{.title = series.pool + ": who holds what over the steady period",
         .description = "",
         .x_label = "seconds",
         .y_label = "GiB",
         .x = {},
         .layers = {}};
  const Instant from = series.at.empty() ? 0 : series.at.front();
  for (const Instant at : series.at) a.x.push_back(to_seconds(at - from).value());
  for (const MemorySeries::Owner& owner : series.owners) {
    Area::Layer layer{owner.name, {}};
    for (const std::int64_t bytes : owner.bytes)
      layer.y.push_back(static_cast<double>(bytes) / gib);
    a.description += fmt::format("{} up to {:.2f} GiB. ", owner.name, std::ranges::max(layer.y));
    a.layers.push_back(std::move(layer));
  }
  // Those that hold most lie lowest.
  std::ranges::stable_sort(a.layers, std::ranges::greater(),
                           [](const Area::Layer& l) { return std::ranges::max(l.y); });
  if (pool != nullptr && std::isfinite(pool->capacity.value())) {
    a.limit = pool->capacity.value() / gib;
    a.limit_label = "capacity " + to_text(pool->capacity);
  }
  return area(a);
}

Html memory(const Report& r) {
  Table t{.header = {"memory", "peak", "reserved", "capacity", "largest owner at the peak"},
          .rows = {},
          .align = {Align::left, Align::right, Align::right, Align::right, Align::left}};
  for (const Report::Pool& p : r.pools) {
    const bool is_bounded = std::isfinite(p.capacity.value());
    t.rows.push_back(
        {alike_text(p.name, p.count), to_text(p.peak),
         p.allocator ? to_text(p.allocator->reserved_peak) : "",
         is_bounded ? to_text(p.capacity) : "",
         p.owners.empty() ? "" : p.owners[0].name + ", " + bytes_text(p.owners[0].bytes)});
  }
  Html html = table(t, "Peaks");
  std::vector<std::string> shown;
  for (const MemorySeries& series : r.memory_timeline) {
    // Ranks are alike: one GPU stands for all.
    const std::string kind = series.pool.starts_with("gpu") ? "gpu" : series.pool;
    if (std::ranges::find(shown, kind) != shown.end()) continue;
    shown.push_back(kind);
    html += memory_over_time(r, series);
  }
  for (const Report::Pool& p : r.pools) {
    Table owners{.header = {"owner", "at the peak"}, .rows = {}, .align = {}};
    for (const Report::Owner& o : p.owners) owners.rows.push_back({o.name, bytes_text(o.bytes)});
    html += details(p.name + ": all owners at the peak", table(owners, p.name));
  }
  return html;
}

Html resources(const Report& r) {
  Bars b{.title = "Resources: busy, and the part of the iteration that waits for them (darker)",
         .description = "",
         .bars = {},
         .most = 1};
  Table t{
      .header = {"resource", "busy", "at full speed", "exposed", "bytes"}, .rows = {}, .align = {}};
  for (const Kin& kin : kin_of(r.resources)) {
    const double exposed = share_of(kin.exposed, r.iteration_time);
    b.bars.push_back(
        {kin.name, kin.busy_fraction.most, exposed,
         percent_text(kin.busy_fraction) + " busy, " + percent_text(exposed) + " exposed"});
    b.description += kin.name + " " + percent_text(exposed) + " exposed. ";
    t.rows.push_back({kin.name, percent_text(kin.busy_fraction), percent_text(kin.work_fraction),
                      to_text(kin.exposed), kin.only_carries ? to_text(kin.bytes) : ""});
  }
  Html html = bars(b);
  html += details("Resources in numbers", table(t, "Resources"));
  return html;
}

Html sensitivity(const Report& r) {
  Bars b{.title = "What 1 % more of a resource would shorten an iteration by",
         .description = "",
         .bars = {}};
  for (const auto& [name, value] : r.elasticities) {
    const double v = std::max(0.0, value);
    b.bars.push_back({name, v, 0, fmt::format("{:.2f} %", v)});
    b.description += fmt::format("{} {:.2f} %. ", name, v);
  }
  Html html = bars(b);
  if (r.doubled) {
    html += paragraphs(fmt::format(
        "With {} twice as fast an iteration takes {}; {}.", r.doubled->name,
        to_text(r.doubled->iteration_time),
        r.doubled->next ? r.doubled->next->name + " binds then" : "nothing alone binds then"));
  }
  return html;
}

Html critical(const Report& r) {
  Table t{.header = {"task", "time", "share", "tasks"}, .rows = {}, .align = {}};
  for (const auto& [name, time, count] : r.critical_tasks) {
    t.rows.push_back(
        {name, to_text(time), percent_text(share_of(time, r.iteration_time)), number_text(count)});
  }
  return table(t, "Tasks of the critical path");
}

Html storage(const Report& r) {
  Table t{.header = {"path", "read", "written", "written a day", "life"}, .rows = {}, .align = {}};
  for (const Report::Path& p : r.paths) {
    if (p.read + p.written <= Bytes(0)) continue;
    t.rows.push_back({p.name, to_text(p.read), to_text(p.written), to_text(p.written_per_day),
                      p.life_years ? fmt::format("{:.3g} years", *p.life_years) : "not rated"});
  }
  Table links{.header = {"copies", "bytes"}, .rows = {}, .align = {}};
  for (const auto& [name, bytes, count] : r.links)
    links.rows.push_back({alike_text(name, count), to_text(bytes)});
  Html html = table(t, "Storage, each iteration");
  html += details("Copies, each iteration", table(links, "Copies"));
  return html;
}

// "host.adam_rate = 3e9 (why)" in three columns.
Html assumptions(const Report& r) {
  Table t{.header = {"value of the profile", "assumed", "why"},
          .rows = {},
          .align = {Align::left, Align::left, Align::left}};
  for (const std::string& line : r.facts.assumptions) {
    const std::size_t equals = line.find(" = "), why = line.find(" (");
    if (equals == std::string::npos || why == std::string::npos || why < equals) {
      t.rows.push_back({line, "", ""});
      continue;
    }
    t.rows.push_back({line.substr(0, equals), line.substr(equals + 3, why - equals - 3),
                      line.substr(why + 2, line.size() - why - 3)});
  }
  return table(t, "Assumed, not measured");
}

Html changes(const Report& r) {
  if (!r.fixes) return {};
  Table t{.header = {"change", "iteration", "as --set"},
          .rows = {},
          .align = {Align::left, Align::right, Align::left}};
  for (const Report::Fix& fix : r.fixes->found) {
    std::string sets;
    for (const std::string& set : fix.sets) sets += (sets.empty() ? "" : " ") + set;
    t.rows.push_back({fix.what, to_text(fix.iteration_time), sets});
  }
  return table(t, "Changes with which it fits, each simulated");
}

}  // namespace

Page report_page(const Report& r, const Plan& plan, const Timeline& timeline) {
  return {.title = r.facts.scenario,
          .subtitle = join({r.facts.policy, r.facts.profile}, " · "),
          .summary = summary(r),
          .sections = {{"What would fit", changes(r)},
                       {"Phases", phases(r)},
                       {"Memory", memory(r)},
                       {"Resources", resources(r)},
                       {"Sensitivity", sensitivity(r)},
                       {"Timeline", lanes(lanes_of(plan, timeline))},
                       {"Critical path", critical(r)},
                       {"Storage and copies", storage(r)},
                       {"Assumptions", assumptions(r)},
                       {"Notes", list(r.facts.notes)}},
          .footer = "tidegate " + r.facts.revision};
}

}  // namespace tidegate::page
