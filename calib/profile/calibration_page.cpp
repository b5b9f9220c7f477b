#include "calib/profile/calibration_page.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <fmt/core.h>

#include "calib/profile/fit_charts.hpp"
#include "calib/profile/values.hpp"
#include "models/base/error.hpp"
#include "models/calibration.hpp"
#include "sim/page/page.hpp"
#include "sim/report/table.hpp"

namespace tidegate::calib {
namespace {

namespace fs = std::filesystem;
using page::Html;

std::string percent(double part) {
  return std::isfinite(part) ? fmt::format("{:.2g} %", 100 * part) : "not told";
}
std::string number(double v) { return std::isfinite(v) ? fmt::format("{:.4g}", v) : "not told"; }

// The samples of the profile, or why there are none.
struct Samples {
  std::optional<Measurements> found;
  std::string remark;
};
Samples samples_of(const std::string& path, const Calibration& c) {
  if (!c.raw) return {std::nullopt, "The profile names no file of samples."};
  const fs::path file = fs::path(path).parent_path() / c.raw->file;
  if (!fs::is_regular_file(file)) {
    return {std::nullopt, "The samples, " + c.raw->file +
                              ", are not beside the profile: points are medians of its tables."};
  }
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  if (!c.raw->fnv1a.empty() && fingerprint(text.str()) != c.raw->fnv1a) {
    return {std::nullopt, "The samples in " + c.raw->file +
                              " are not those of the profile: points are medians of its tables."};
  }
  return {read_lines(text.str(), file.string()),
          fmt::format("Points are the {} blocks of {}.", c.raw->blocks, c.raw->file)};
}

Html summary(const Calibration& c, const std::string& remark) {
  std::vector<page::Figure> all;
  if (c.error_floor) {
    all.push_back({"Error floor, compute", percent(c.error_floor->compute_bound),
                   "no prediction here can be trusted further"});
    all.push_back({"Error floor, storage", percent(c.error_floor->io_bound), ""});
  }
  all.push_back({"Measured for", fmt::format("{:.0f} s", c.seconds),
                 fmt::format("{} passes{}", c.passes, c.is_complete ? "" : ", INTERRUPTED")});
  if (c.gate) {
    all.push_back({"Samples", fmt::format("{}", c.gate->accepted),
                   fmt::format("{} more rejected beside other work", c.gate->rejected)});
  }
  const auto suspected =
      std::ranges::count(c.checks, Calibration::Verdict::suspected, &Calibration::Check::verdict);
  all.push_back({"Checks", fmt::format("{}", c.checks.size()),
                 suspected == 0 ? "none suspected" : fmt::format("{} suspected", suspected)});
  Html html = page::figures(all);
  return html += page::paragraphs(remark);
}

Html checks(const Calibration& c) {
  Table table{.header = {"Check", "Verdict", "Evidence"},
              .rows = {},
              .align = {Align::left, Align::left, Align::left}};
  for (const auto& check : c.checks) {
    table.rows.push_back({check.name, name_of(check.verdict), check.evidence});
  }
  return page::table(table, "Could a number be a lie?");
}

Html values(const ProfileValues& profile) {
  Table table{.header = {"Key", "Value", "One deviation", "Origin"},
              .rows = {},
              .align = {Align::left, Align::right, Align::right, Align::left}};
  for (const ProfileValue& v : profile.values) {
    table.rows.push_back({v.key,
                          v.curve.empty() ? v.text : fmt::format("{} points", v.curve.size()),
                          v.uncertainty > 0 ? percent(v.uncertainty) : "",
                          (v.is_assumed ? "assumed: " : "") + v.origin});
  }
  return page::table(table, "What a prediction takes from this profile");
}

Html fit_table(const Calibration::Fit& fit) {
  Table table{.header = {"Parameter", "Value", "95 % from", "to"}, .rows = {}, .align = {}};
  for (const auto& p : fit.parameters) {
    table.rows.push_back({p.name, number(p.value), number(p.low), number(p.high)});
  }
  Html html = page::table(table, fit.quantity + ", " + fit.form);
  return html += page::paragraphs(fmt::format(
             "Errors: {} at the settings, {} at settings left out, {} in passes left out; the "
             "measurement's own: {}.",
             percent(fit.residual), percent(fit.held_out_setting), percent(fit.held_out_pass),
             percent(fit.measurement)));
}

Html fits(const Calibration& c, const Measurements* samples) {
  Html html;
  for (const Calibration::Fit& fit : c.fits) {
    html += fit_charts(fit, c, samples);
    html += page::details("Parameters and errors of " + fit.quantity, fit_table(fit));
  }
  return html;
}

Html tables(const Calibration& c) {
  Html html;
  for (const Calibration::Table& t : c.tables) {
    Table table{.header = t.coordinates, .rows = {}, .align = {}};
    for (const std::string name : {t.unit.c_str(), "from", "to", "blocks"}) {
      table.header.push_back(name);
    }
    for (const auto& row : t.rows) {
      std::vector<std::string> cells;
      for (std::size_t i = 0; i < row.size(); ++i) {
        cells.push_back(i < t.coordinates.size() ? coordinate_text(t.coordinates[i], row[i])
                                                 : number(row[i]));
      }
      table.rows.push_back(std::move(cells));
    }
    html += page::details(fmt::format("{} ({} settings)", t.quantity, t.rows.size()),
                          page::table(table, t.quantity + ", medians with their 95 % intervals"));
  }
  return html;
}

Html canaries(const Calibration& c, const Measurements* samples) {
  Table table{.header = {"Probe", "Samples", "Spread", "Drift"}, .rows = {}, .align = {}};
  for (const auto& canary : c.canaries) {
    table.rows.push_back({canary.name, fmt::format("{}", canary.samples), percent(canary.spread),
                          percent(canary.drift)});
  }
  Html html = canary_chart(samples);
  return html += page::table(table, "What drifted while the run went on");
}

Html nodes(const Calibration& c) {
  if (c.nodes < 2) return {};
  std::vector<std::string> slow;
  for (const auto& [name, evidence] : c.slow_nodes) slow.push_back(name + ": " + evidence);
  Html html = slow.empty() ? page::paragraphs("No node is slower than the others beyond noise.")
                           : page::list(slow);
  Table table{.header = {"Row", "Least", "Median", "Most"}, .rows = {}, .align = {}};
  for (const auto& s : c.spreads) {
    table.rows.push_back({s.row, number(s.least), number(s.middle), number(s.most)});
  }
  return html += page::table(table, fmt::format("Over {} nodes", c.nodes));
}

Html provenance(const Calibration& c) {
  Table table{.header = {}, .rows = {}, .align = {Align::left, Align::left}};
  table.rows = {{"tool", c.tool}, {"created", c.created}, {"command", c.command}};
  table.rows.push_back({"seed", fmt::format("{}", c.seed)});
  if (c.gate) {
    table.rows.push_back({"allowed beside a sample",
                          fmt::format("{:g} cores of other work, {} of other traffic",
                                      c.gate->foreign_cores, to_text(c.gate->foreign_io))});
  }
  for (const auto& n : c.noise) {
    table.rows.push_back(
        {"blocks of " + n.kind + " rows deviate by",
         fmt::format("{}, {:.3g} degrees of freedom", percent(n.spread), n.freedom)});
  }
  if (c.raw) table.rows.push_back({"samples", c.raw->file + ", fnv1a " + c.raw->fnv1a});
  for (const auto& [key, fact] : c.host) table.rows.push_back({"host: " + key, fact});
  return page::table(table, "How it was measured");
}

Html not_measured(const Calibration& c) {
  Table table{.header = {"What", "Why"}, .rows = {}, .align = {Align::left, Align::left}};
  for (const auto& [name, why] : c.not_measured) table.rows.push_back({name, why});
  return page::table(table, "Not measured");
}

}  // namespace

std::string show_html(const std::string& path) {
  const ProfileValues profile = values_of(path);
  const std::optional<Calibration> c = load_calibration(path);
  if (!c) {
    throw InputError(path +
                     ": has no section calibration; a page is made of profiles that "
                     "tidegate calib measured");
  }
  const Samples samples = samples_of(path, *c);
  const Measurements* found = samples.found ? &*samples.found : nullptr;
  page::Page page{.title = profile.name,
                  .subtitle = profile.description,
                  .summary = summary(*c, samples.remark),
                  .sections = {{"Checks", checks(*c)},
                               {"Values", values(profile)},
                               {"Fits", fits(*c, found)},
                               {"Canaries", canaries(*c, found)},
                               {"Nodes", nodes(*c)},
                               {"Measured tables", tables(*c)},
                               {"Provenance", provenance(*c)},
                               {"Not measured", not_measured(*c)}},
                  .footer = fmt::format("{}, measured {}", c->tool, c->created)};
  return page::to_html(page);
}

}  // namespace tidegate::calib
