#include "calib/profile/show.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include <fmt/core.h>

#include "calib/profile/fitted.hpp"
#include "calib/profile/values.hpp"
#include "models/calibration.hpp"

namespace tidegate::calib {
namespace {

using Table = Calibration::Table;

std::string percent(double part) {
  return std::isfinite(part) ? fmt::format("{:.2g} %", 100 * part) : "not told";
}
std::string number(double v) { return std::isfinite(v) ? fmt::format("{:.4g}", v) : "?"; }

std::string heading(const ProfileValues& profile) {
  return profile.name + (profile.description.empty() ? "" : "\n" + profile.description) + "\n";
}

std::string account(const Calibration& c) {
  std::string text = fmt::format("\nmeasured {} by {}{}\n", c.created, c.tool,
                                 c.is_complete ? "" : ": INTERRUPTED, not complete");
  if (!c.command.empty()) text += "  " + c.command + "\n";
  text += fmt::format("  {:.0f} s, {} passes, seed {}\n", c.seconds, c.passes, c.seed);
  if (c.gate) {
    text += fmt::format(
        "  {} samples count, {} rejected beside other work (limits {:g} cores, {})\n",
        c.gate->accepted, c.gate->rejected, c.gate->foreign_cores, to_text(c.gate->foreign_io));
  }
  if (c.raw) text += fmt::format("  samples: {}, {} blocks\n", c.raw->file, c.raw->blocks);
  for (const auto& [key, fact] : c.host) text += fmt::format("  {:<13} {}\n", key, fact);
  if (c.error_floor) {
    text += fmt::format(
        "\nno prediction here can be trusted further than\n  {} where compute is the bound, {} "
        "where storage is, {} where they overlap\n",
        percent(c.error_floor->compute_bound), percent(c.error_floor->io_bound),
        percent(c.error_floor->overlapped));
  }
  for (const Calibration::Noise& n : c.noise) {
    text += fmt::format("  blocks of {} rows deviate by {} ({:.3g} degrees of freedom)\n", n.kind,
                        percent(n.spread), n.freedom);
  }
  return text;
}

std::string nodes(const Calibration& c) {
  if (c.nodes < 2) return "";
  std::string text = fmt::format("\n{} nodes\n", c.nodes);
  for (const auto& [name, evidence] : c.slow_nodes) {
    text += fmt::format("  slow: {}: {}\n", name, evidence);
  }
  for (const auto& s : c.spreads) {
    text += fmt::format("  {:<34} {} to {}, median {}\n", s.row, number(s.least), number(s.most),
                        number(s.middle));
  }
  return text;
}

std::string checks(const Calibration& c) {
  if (c.checks.empty()) return "";
  std::string text = "\nchecks\n";
  for (const Calibration::Check& check : c.checks) {
    text += fmt::format("  {:<22} {:<10} {}\n", check.name, name_of(check.verdict), check.evidence);
  }
  return text;
}

std::string values(const ProfileValues& profile) {
  std::string text = "\nvalues (one standard deviation)\n";
  for (const ProfileValue& v : profile.values) {
    const std::string shown = v.curve.empty() ? v.text : fmt::format("{} points", v.curve.size());
    const std::string noise = v.uncertainty > 0 ? "±" + percent(v.uncertainty) : "";
    text += fmt::format("  {:<32} {:>16} {:<8} {}{}\n", v.key, shown, noise,
                        v.is_assumed ? "assumed: " : "", v.origin);
  }
  return text;
}

std::string residual_line(const Calibration::Fit& fit, const Calibration& c, Glyphs glyphs) {
  std::vector<double> residuals;
  for (const FittedSetting& setting : settings_of(fit, c)) residuals.push_back(setting.residual());
  double most = 0;
  for (const double r : residuals) most = std::isfinite(r) ? std::max(most, std::abs(r)) : most;
  if (residuals.empty()) return "";
  return fmt::format("    {}  log(model/measured) of {} settings, within {}\n",
                     sparkline(residuals, -most, most, glyphs), residuals.size(), percent(most));
}

std::string fits(const Calibration& c, Glyphs glyphs) {
  if (c.fits.empty()) return "";
  std::string text = "\nfits (95 % intervals)\n";
  for (const Calibration::Fit& fit : c.fits) {
    text += fmt::format("  {}: {}, {}\n", fit.quantity, fit.form,
                        fit.is_used ? "used" : "not used, its table is");
    for (const auto& p : fit.parameters) {
      text += fmt::format("    {:<8} {:>11}  {} to {}\n", p.name, number(p.value), number(p.low),
                          number(p.high));
    }
    text += fmt::format(
        "    errors: {} at the settings, {} at settings left out, {} in passes left out; the "
        "measurement's own: {}\n",
        percent(fit.residual), percent(fit.held_out_setting), percent(fit.held_out_pass),
        percent(fit.measurement));
    text += residual_line(fit, c, glyphs);
  }
  return text;
}

std::set<double> values_in(const Table& table, std::size_t column) {
  std::set<double> values;
  for (const auto& row : table.rows) values.insert(row[column]);
  return values;
}

// Memory of each NUMA node from the CPUs of each: rows are where the CPUs are.
std::string numa(const Calibration& c) {
  std::string text;
  for (const Table& table : c.tables) {
    if (table.coordinates != std::vector<std::string>{"from", "to"} || table.rows.empty()) continue;
    text += fmt::format("\n{}, {}: from CPUs of a node (down) in memory of a node (across)\n{:6}",
                        table.quantity, table.unit, "");
    const std::set<double> to = values_in(table, 1);
    for (const double node : to) text += fmt::format(" {:>10}", number(node));
    for (const double from : values_in(table, 0)) {
      text += fmt::format("\n  {:>4}", number(from));
      for (const double node : to) {
        const auto at = std::ranges::find_if(
            table.rows, [&](const auto& row) { return row[0] == from && row[1] == node; });
        text += fmt::format(" {:>10}", at == table.rows.end() ? "?" : number((*at)[2]));
      }
    }
    text += "\n";
  }
  return text;
}

std::string tables(const Calibration& c, Glyphs glyphs) {
  if (c.tables.empty()) return "";
  std::string text = "\nmeasured (least to most)\n";
  for (const Table& table : c.tables) {
    if (table.rows.empty()) continue;
    const std::size_t at = table.coordinates.size();
    std::vector<double> column;
    for (const auto& row : table.rows) column.push_back(row[at]);
    const auto [low, high] = std::ranges::minmax(column);
    text += fmt::format("  {:<24} {} to {} {}  {}\n", table.quantity, number(low), number(high),
                        table.unit, sparkline(column, low, high, glyphs, 40));
  }
  return text;
}

std::string canaries(const Calibration& c) {
  if (c.canaries.empty()) return "";
  std::string text = "\ncanaries (a fixed probe, again and again)\n";
  for (const Calibration::Canary& canary : c.canaries) {
    text += fmt::format("  {:<12} {} samples, spread {}, drift {}\n", canary.name, canary.samples,
                        percent(canary.spread), percent(canary.drift));
  }
  return text;
}

std::string not_measured(const Calibration& c) {
  if (c.not_measured.empty()) return "";
  std::string text = "\nnot measured\n";
  for (const auto& [name, why] : c.not_measured) text += fmt::format("  {:<22} {}\n", name, why);
  return text;
}

// Replaces what is not ASCII in our own words.
std::string plain(std::string text, Glyphs glyphs) {
  if (glyphs == Glyphs::utf8) return text;
  for (std::size_t at = 0; (at = text.find("±", at)) != std::string::npos;) {
    text.replace(at, std::string("±").size(), "+-");
  }
  return text;
}

}  // namespace

std::string show_text(const std::string& path, Glyphs glyphs) {
  const ProfileValues profile = values_of(path);
  const std::optional<Calibration> c = load_calibration(path);
  if (!c) {
    return heading(profile) + "\nnot measured by tidegate calib: no section calibration\n" +
           plain(values(profile), glyphs);
  }
  return heading(profile) + account(*c) + nodes(*c) + checks(*c) + plain(values(profile), glyphs) +
         fits(*c, glyphs) + tables(*c, glyphs) + numa(*c) + canaries(*c) + not_measured(*c);
}

}  // namespace tidegate::calib
