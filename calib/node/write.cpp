#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "calib/node/estimate.hpp"
#include "calib/node/node.hpp"
#include "calib/node/yaml_text.hpp"
#include "models/base/units.hpp"

namespace tidegate::calib {
namespace {

std::string percent(double fraction) { return fmt::format("{:.2g} %", 100 * fraction); }

std::string entry_text(const Entry& e) {
  if (e.kind == Entry::Kind::plain) return e.text;
  std::string text =
      fmt::format("{{{}: {}, {}: {}", e.kind == Entry::Kind::points ? "points" : "value", e.text,
                  e.is_assumed ? "assumed" : "source", scalar_text(e.source));
  if (e.uncertainty > 0) text += ", uncertainty: " + percent(std::min(1.0, e.uncertainty));
  return text + "}";
}

void write_sections(std::string& out, const NodeProfile& profile) {
  bool in_paths = false;
  for (const Section& section : profile.sections) {
    const bool is_path = section.key.starts_with("paths.");
    if (is_path && !in_paths) out += "\npaths:\n";
    out += is_path ? fmt::format("  {}:\n", section.key.substr(6))
                   : fmt::format("\n{}:\n", section.key);
    in_paths = is_path;
    for (const Entry& e : section.entries) {
      out += fmt::format("{}{}: {}\n", is_path ? "    " : "  ", e.key, entry_text(e));
    }
  }
}

std::string numbers(const std::vector<double>& values) {
  std::string text;
  for (const double v : values) {
    text += text.empty() ? "" : ", ";
    text += std::isfinite(v) ? fmt::format("{:.6g}", v) : std::string("~");
  }
  return "[" + text + "]";
}

void write_fits(std::string& out, const NodeProfile& profile) {
  if (profile.fits.empty()) return;
  out += "  fits:\n";
  for (const auto& [quantity, of, f] : profile.fits) {
    std::string parameters, domain, rows;
    for (const auto& [name, value] : of) {
      rows += fmt::format("{}{}: {:.10g}", rows.empty() ? "of: {" : ", ", name, value);
    }
    if (!rows.empty()) rows += "}, ";
    for (const Parameter& p : f.parameters) {
      parameters += fmt::format("{}{}: {}", parameters.empty() ? "" : ", ", p.name,
                                numbers({p.value, p.interval.low, p.interval.high}));
    }
    for (const Interval& d : f.domain) {
      domain += (domain.empty() ? "" : ", ") + numbers({d.low, d.high});
    }
    out += fmt::format(
        "    {}: {{form: {}, {}parameters: {{{}}}, residual: {}, held_out_setting: {}, "
        "held_out_pass: {}, "
        "measurement: {}, used: {}, domain: [{}]}}\n",
        quantity, f.form, rows, parameters, percent(f.residual), percent(f.held_out_setting),
        percent(f.held_out_pass), percent(f.measurement), f.is_usable, domain);
  }
}

void write_tables(std::string& out, const NodeProfile& profile) {
  if (profile.tables.empty()) return;
  out += "  tables:\n";
  for (const MeasuredTable& table : profile.tables) {
    std::string names;
    for (const std::string& name : table.coordinates) names += (names.empty() ? "" : ", ") + name;
    out += fmt::format("    {}:\n      coordinates: [{}]\n      unit: {}\n      rows:\n",
                       table.quantity, names, table.unit);
    for (const auto& row : table.rows) out += "        - " + numbers(row) + "\n";
  }
}

void write_canaries(std::string& out, const Measurements& m) {
  std::string text;
  for (const Canary& canary : m.canaries) {
    if (canary.value.size() < 2) continue;
    const double first = canary.value.front(), last = canary.value.back();
    const double middle = median(canary.value);
    text += fmt::format("    {}: {{samples: {}, spread: {}, drift: {}}}\n", canary.name,
                        canary.value.size(), percent(spread(canary.value) / middle),
                        percent(std::abs(last - first) / middle));
  }
  if (!text.empty()) out += "  canaries:\n" + text;
}

void write_account(std::string& out, const Measurements& m, const Account& a) {
  const rig::HostFacts& h = a.host;
  out += "\ncalibration:\n";
  out += "  tool: " + scalar_text(a.tool) + "\n  created: " + a.created +
         "\n  command: " + scalar_text(a.command) + "\n";
  out += fmt::format("  complete: {}\n  seconds: {:.0f}\n  seed: {}\n  passes: {}\n", m.is_complete,
                     m.seconds, a.seed, m.passes);
  out += fmt::format(
      "  host: {{id: {}, cpu: {}, kernel: {}, cores: {}, numa_nodes: {}, memory: {:.1f} GiB, "
      "hypervisor: {}, "
      "clock_source: {}, huge_pages: {}, quota_cores: {:g}}}\n",
      scalar_text(h.id), scalar_text(h.cpu), scalar_text(h.kernel), h.logical_cores, h.numa_nodes,
      h.memory.value() / 1073741824.0, scalar_text(h.hypervisor.empty() ? "none" : h.hypervisor),
      scalar_text(h.clock_source.empty() ? "unknown" : h.clock_source),
      scalar_text(h.huge_pages.empty() ? "unknown" : h.huge_pages), h.quota_cores);
  out += fmt::format(
      "  gate: {{accepted: {}, rejected: {}, foreign_cores: {:g}, foreign_io: {:g} MB/s}}\n",
      m.accepted, m.rejected, a.gate.cpu_cores, a.gate.io_bytes / 1e6);
}

void write_blocks_and_floors(std::string& out, const NodeProfile& profile, const Measurements& m,
                             const Account& a) {
  std::size_t blocks = 0;
  for (const RowResult& row : m.rows) blocks += row.blocks.size();
  if (!a.raw_file.empty()) {
    out += fmt::format("  raw: {{file: {}, fnv1a: {}, blocks: {}}}\n", scalar_text(a.raw_file),
                       a.raw_hash, blocks);
  }
  // What was not measured is not told, rather than perfect.
  const auto floor = [](double part) { return part > 0 ? percent(part) : std::string("inf %"); };
  const bool has_both = profile.floors.compute > 0 && profile.floors.io > 0;
  out += fmt::format("  error_floor: {{compute_bound: {}, io_bound: {}, overlapped: {}}}\n",
                     floor(profile.floors.compute), floor(profile.floors.io),
                     floor(has_both ? profile.floors.overlapped : 0));
  std::string noise;
  for (const auto& [kind, known] : profile.noise) {
    noise += fmt::format("{}{}: {{spread: {}, freedom: {:.3g}}}", noise.empty() ? "" : ", ", kind,
                         percent(known.spread), known.freedom);
  }
  if (!noise.empty()) out += "  noise: {" + noise + "}\n";
}

void write_nodes(std::string& out, const Account& a) {
  if (a.nodes < 2) return;
  out += fmt::format("  nodes:\n    count: {}\n    slow:", a.nodes);
  if (a.slow.empty()) out += " {}";
  out += "\n";
  for (const SlowNode& n : a.slow) {
    out += fmt::format("      {}: {}\n", scalar_text(n.node), scalar_text(n.evidence));
  }
  out += "    spread:\n";
  for (const NodeSpread& s : a.spreads) {
    out += fmt::format("      {}: [{:.6g}, {:.6g}, {:.6g}]\n", scalar_text(s.row), s.least,
                       s.middle, s.most);
  }
}

void write_checks(std::string& out, const Account& a, const Measurements& m) {
  if (!a.checks.empty()) out += "  checks:\n";
  for (const CheckResult& c : a.checks) {
    out += fmt::format("    {}: {{verdict: {}, evidence: {}}}\n", c.name, c.verdict,
                       scalar_text(c.evidence));
  }
  std::string missing;
  for (const auto& [name, why] : a.not_measured) {
    missing += fmt::format("    {}: {}\n", scalar_text(name), scalar_text(why));
  }
  for (const RowResult& row : m.rows) {
    for (const std::string& fault : row.faults) {
      missing += fmt::format("    {}: {}\n", scalar_text(row.row.id()), scalar_text(fault));
      break;
    }
  }
  if (!missing.empty()) out += "  not_measured:\n" + missing;
}

}  // namespace

std::string to_yaml(const NodeProfile& profile, const Measurements& m, const Account& account) {
  std::string out = fmt::format(
      "# Measured by tidegate calib on {}. `tidegate calib show` prints it as a page.\nkind: "
      "node\nname: {}\n"
      "description: {}\n",
      account.created, scalar_text(profile.name), scalar_text(profile.description));
  write_sections(out, profile);
  write_account(out, m, account);
  write_blocks_and_floors(out, profile, m, account);
  write_canaries(out, m);
  write_nodes(out, account);
  write_checks(out, account, m);
  write_fits(out, profile);
  write_tables(out, profile);
  return out;
}

}  // namespace tidegate::calib
