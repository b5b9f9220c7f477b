#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "calib/node/estimate.hpp"
#include "calib/run/run.hpp"

namespace tidegate::calib {
namespace {

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100 * fraction); }

// One pass, or nothing measured, tells no drift.
std::string floor_text(double floor) { return floor > 0 ? percent(floor) : "not told"; }

// Names that share a reason share a line.
std::string not_measured_text(const std::vector<std::pair<std::string, std::string>>& all) {
  std::vector<std::pair<std::string, std::string>> reasons;  // reason, names
  for (const auto& [name, why] : all) {
    const auto at = std::ranges::find(reasons, why, &std::pair<std::string, std::string>::first);
    if (at == reasons.end()) {
      reasons.emplace_back(why, name);
    } else {
      at->second += ", " + name;
    }
  }
  std::string text;
  for (const auto& [why, names] : reasons)
    text += fmt::format("Not measured: {}: {}\n", names, why);
  return text;
}

void add_sections(std::string& text, const NodeProfile& node) {
  for (const Section& section : node.sections) {
    text += fmt::format("\n{}\n", section.key);
    for (const Entry& e : section.entries) {
      if (e.kind == Entry::Kind::points) continue;
      const std::string spread = e.uncertainty > 0 ? "+- " + percent(e.uncertainty) : "";
      const std::string origin =
          e.kind == Entry::Kind::plain ? "" : (e.is_assumed ? "assumed: " : "") + e.source;
      text += fmt::format("  {:20} {:>16} {:>10}  {}\n", e.key, e.text, spread, origin);
    }
  }
}

// The commonest reason, without its number: "cores busy with other work".
std::string main_reason(const Measurements& m) {
  std::map<std::string, std::size_t> reasons;
  for (const RowResult& row : m.rows) {
    for (const Block& block : row.blocks) {
      for (const TakenSample& s : block.samples) {
        if (s.spoiled.empty()) continue;
        const bool has_number = s.spoiled[0] >= '0' && s.spoiled[0] <= '9';
        ++reasons[has_number ? s.spoiled.substr(s.spoiled.find(' ') + 1) : s.spoiled];
      }
    }
  }
  const auto most = std::ranges::max_element(reasons, {}, [](const auto& r) { return r.second; });
  return most == reasons.end() ? "" : most->first;
}

void add_faults(std::string& text, const Outcome& outcome) {
  std::string faults;
  for (const RowResult& row : outcome.measurements.rows) {
    for (const std::string& fault : row.faults)
      faults += fmt::format("  {}: {}\n", row.row.id(), fault);
  }
  std::size_t empty = 0;
  for (const RowResult& row : outcome.measurements.rows) {
    empty += row.faults.empty() && block_values(row).empty() ? 1U : 0U;
  }
  if (empty > 0) faults += fmt::format("  {} rows: every sample was rejected\n", empty);
  if (!faults.empty()) text += "\nRows that do not count\n" + faults;
  std::size_t unsettled = 0, blocks = 0;
  for (const RowResult& row : outcome.measurements.rows) {
    for (const Block& block : row.blocks) unsettled += block.is_converged ? 0 : 1, ++blocks;
  }
  const Measurements& m = outcome.measurements;
  text += fmt::format("\n{} blocks, {} of them not settled to 2 %; {} samples taken", blocks,
                      unsettled, m.accepted);
  if (m.rejected > 0)
    text += fmt::format(", {} rejected, mostly for: {}", m.rejected, main_reason(m));
  text += "\n";
}

void add_nodes(std::string& text, const Outcome& outcome) {
  if (outcome.account.nodes < 2) return;
  text += fmt::format("\n{} nodes\n", outcome.account.nodes);
  const std::string slow = outlier_text(outcome.outliers);
  const auto judged =
      std::ranges::find(outcome.account.checks, std::string("nodes"), &CheckResult::name);
  text += judged != outcome.account.checks.end() ? "  " + judged->evidence + "\n"
          : slow.empty()                         ? "  none is slower than the others beyond noise\n"
                                                 : slow;
}

void add_checks(std::string& text, const Outcome& outcome) {
  if (outcome.account.checks.empty()) return;
  text += "\nChecks\n";
  for (const CheckResult& c : outcome.account.checks) {
    text += fmt::format("  {:20} {:10} {}\n", c.name, c.verdict, c.evidence);
  }
}

}  // namespace

std::string to_text(const Outcome& outcome) {
  const NodeProfile& node = outcome.node;
  std::string text = node.description + "\n";
  if (!outcome.is_complete) text += "INTERRUPTED: this is what was measured until then.\n";
  add_sections(text, node);
  add_nodes(text, outcome);
  add_checks(text, outcome);
  add_faults(text, outcome);
  text += fmt::format(
      "Error floor of predictions on this machine, from its drift: compute {}, storage {}, both at "
      "once {}\n",
      floor_text(node.floors.compute), floor_text(node.floors.io),
      floor_text(node.floors.compute > 0 && node.floors.io > 0 ? node.floors.overlapped : 0));
  text += not_measured_text(outcome.account.not_measured);
  if (!node.missing.empty()) {
    text += "The profile lacks what a simulation needs:";
    for (const std::string& key : node.missing) text += " " + key;
    text += "\n";
  }
  text += fmt::format("\nWrote {} and {}\n", outcome.profile, outcome.raw);
  if (outcome.is_complete && node.missing.empty()) {
    text += fmt::format(
        "Next: tidegate simulate SCENARIO --hardware {}\n      tidegate calib show {}\n",
        outcome.profile, outcome.profile);
  }
  if (!outcome.is_complete) text += "Next: the same command with --resume goes on from here\n";
  return text;
}

std::string to_json(const Outcome& outcome) {
  nlohmann::ordered_json root;
  root["profile"] = outcome.profile;
  root["samples"] = outcome.raw;
  root["complete"] = outcome.is_complete;
  root["seconds"] = outcome.measurements.seconds;
  root["accepted"] = outcome.measurements.accepted;
  root["rejected"] = outcome.measurements.rejected;
  root["error_floor"] = {{"compute_bound", outcome.node.floors.compute},
                         {"io_bound", outcome.node.floors.io},
                         {"overlapped", outcome.node.floors.overlapped}};
  root["missing"] = outcome.node.missing;
  for (const CheckResult& c : outcome.account.checks) {
    root["checks"].push_back({{"name", c.name}, {"verdict", c.verdict}, {"evidence", c.evidence}});
  }
  for (const Outlier& o : outcome.outliers) {
    root["slow_nodes"].push_back({{"node", o.node},
                                  {"row", o.row},
                                  {"value", o.value},
                                  {"typical", o.typical},
                                  {"factor", o.factor}});
  }
  for (const RowResult& row : outcome.measurements.rows) {
    if (block_values(row).empty()) continue;
    const Estimate e = estimate(row);
    root["rows"].push_back({{"id", row.row.id()},
                            {"unit", name_of(row.row.unit)},
                            {"value", e.value},
                            {"spread", e.spread},
                            {"blocks", e.blocks},
                            {"faults", row.faults}});
  }
  return root.dump(2) + "\n";
}

}  // namespace tidegate::calib
