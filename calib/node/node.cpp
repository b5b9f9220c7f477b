#include "calib/node/node.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include <fmt/core.h>

#include "calib/node/sections.hpp"

namespace tidegate::calib {
namespace {

// How a quantity is fitted: by the last part of its name, or the whole. Rows that differ in other
// coordinates are another curve: those at `of` are taken, and of `largest` those with the largest.
struct FitRule {
  std::string_view quantity;
  Form form;
  std::vector<std::string> coordinates;
  std::vector<std::pair<std::string, double>> of;
  std::string largest;
};
const std::vector<FitRule>& fit_rules() {
  static const std::vector<std::pair<std::string, double>> one_file = {{"files", 1}};
  static const std::vector<std::pair<std::string, double>> by_engine = {
      {"memory", 1}, {"by", 0}, {"gpu", 0}};
  static const std::vector<FitRule> rules = {
      {"read", Form::queue_saturating, {"block", "depth"}, one_file, ""},
      {"write", Form::queue_saturating, {"block", "depth"}, one_file, ""},
      {"gds_read", Form::queue_saturating, {"block", "depth"}, {}, ""},
      {"gds_write", Form::queue_saturating, {"block", "depth"}, {}, ""},
      {"dram.read", Form::thread_saturating, {"threads"}, {}, "bytes"},
      {"dram.write", Form::thread_saturating, {"threads"}, {}, "bytes"},
      {"dram.copy", Form::thread_saturating, {"threads"}, {}, "bytes"},
      {"dram.copy_streaming", Form::thread_saturating, {"threads"}, {}, "bytes"},
      {"dram.triad", Form::thread_saturating, {"threads"}, {}, "bytes"},
      {"host_copy", Form::half_size, {"bytes"}, {}, ""},
      {"host_copy_again", Form::cache_knee, {"bytes"}, {}, ""},
      {"gpu.h2d", Form::half_size, {"bytes"}, by_engine, ""},
      {"gpu.d2h", Form::half_size, {"bytes"}, by_engine, ""},
      {"gpu.memory", Form::half_size, {"bytes"}, {{"kernel", 0}, {"gpu", 0}}, ""},
  };
  return rules;
}

// Keeps the rows that the rule is of; returns by which coordinates, as far as rows have them.
std::vector<std::pair<std::string, double>> keep_rows_of(const FitRule& rule,
                                                         std::vector<const RowResult*>& rows) {
  auto of = rule.of;
  if (!rule.largest.empty()) {
    double most = 0;
    for (const RowResult* row : rows) most = std::max(most, coordinate(row->row, rule.largest));
    of.emplace_back(rule.largest, most);
  }
  for (const auto& [name, value] : of) rows = with(std::move(rows), name, value);
  std::erase_if(of, [&rows](const auto& at) {
    return std::ranges::none_of(
        rows, [&at](const RowResult* row) { return coordinate(row->row, at.first) >= 0; });
  });
  return of;
}

const FitRule* rule_for(const std::string& quantity) {
  for (const FitRule& rule : fit_rules()) {
    const bool whole = rule.quantity == quantity;
    const bool is_path = rule.quantity.find('.') == std::string_view::npos;
    const std::string last = quantity.substr(quantity.find('.') + 1);
    if (whole || (is_path && quantity.find('.') != std::string::npos && last == rule.quantity)) {
      return &rule;
    }
  }
  return nullptr;
}

MeasuredTable table_of(const std::string& quantity, const std::vector<const RowResult*>& rows) {
  MeasuredTable table{quantity, name_of(rows[0]->row.unit), {}, {}};
  for (const auto& [name, value] : rows[0]->row.at) table.coordinates.push_back(name);
  for (const RowResult* row : rows) {
    std::vector<double> line;
    for (const std::string& name : table.coordinates) line.push_back(coordinate(row->row, name));
    const std::vector<double> values = block_values(*row);
    const Interval range = median_interval(values);
    line.insert(line.end(),
                {median(values), range.low, range.high, static_cast<double>(values.size())});
    table.rows.push_back(std::move(line));
  }
  return table;
}

void fit_and_tabulate(NodeProfile& profile, const Measurements& m) {
  std::vector<std::string> quantities;
  for (const RowResult& row : m.rows) {
    if (std::ranges::find(quantities, row.row.quantity) == quantities.end()) {
      quantities.push_back(row.row.quantity);
    }
  }
  for (const std::string& quantity : quantities) {
    auto rows = rows_of(m, quantity);
    if (rows.empty()) continue;
    profile.tables.push_back(table_of(quantity, rows));
    const FitRule* rule = rule_for(quantity);
    if (rule == nullptr) continue;
    auto of = keep_rows_of(*rule, rows);
    const std::vector<Point> all = points(rows, rule->coordinates);
    constexpr std::size_t least = 5;  // settings, above the number of parameters of any rule
    if (rows.size() >= least) {
      profile.fits.push_back({quantity, std::move(of), fit(rule->form, all)});
    }
  }
}

// Rows whose blocks deviate alike, and the sections whose values come from them.
std::string kind_of(const Row& row) {
  if (row.quantity.starts_with("gpu.")) return "gpu";
  return row.gate == Gate::cpu ? "compute" : row.gate == Gate::io ? "storage" : "";
}
std::string kind_of(const std::string& section, bool has_gpu) {
  if (section.starts_with("paths.")) return "storage";
  if (section == "host") return "compute";
  if (section == "gpus" || section == "fabric") return has_gpu ? "gpu" : "compute";
  return "";
}

void moderate(NodeProfile& profile, const Measurements& m, bool has_gpu) {
  std::map<std::string, std::vector<KnownSpread>> rows;
  for (const RowResult& row : m.rows) {
    if (!row.faults.empty() || block_values(row).empty()) continue;
    const Estimate e = estimate(row);
    rows[kind_of(row.row)].push_back({e.spread, static_cast<double>(e.blocks) - 1});
  }
  for (const std::string kind : {"compute", "storage", "gpu"}) {
    const KnownSpread prior = prior_of(rows[kind]);
    if (prior.freedom <= 0) continue;
    profile.noise.emplace_back(kind, prior);
    for (Section& section : profile.sections) {
      if (kind_of(section.key, has_gpu) != kind) continue;
      for (Entry& e : section.entries) {
        if (e.freedom >= 0) e.uncertainty = moderated({e.uncertainty, e.freedom}, prior).spread;
      }
    }
  }
}

std::string host_name(const Setup& setup) {
  return fmt::format("{} cores, {}", setup.host.physical_cores, setup.host.cpu);
}

}  // namespace

NodeProfile node_profile(const Measurements& m, const Setup& setup,
                         const std::optional<NamedGpus>& gpus, const GpuNames& found) {
  NodeProfile profile;
  profile.name = "calibrated_" + setup.host.id;
  profile.description = host_name(setup) + ", measured by tidegate calib";
  profile.sections.push_back(gpus              ? component_section(*gpus)
                             : found.count > 0 ? gpu_section(m, found, profile.missing)
                                               : cpu_device_section(m, setup, profile.missing));
  if (auto fabric = fabric_section(m, profile.missing))
    profile.sections.push_back(std::move(*fabric));
  profile.sections.push_back(host_section(m, setup, profile.missing));
  if (!rows_of(m, "net.send").empty()) {
    profile.sections.push_back(network_section(m, profile.missing));
  }
  for (const StorageTarget& target : setup.storage) {
    profile.sections.push_back(path_section(m, target, profile.missing));
  }
  moderate(profile, m, found.count > 0);
  fit_and_tabulate(profile, m);
  const double compute = std::numbers::sqrt2 * drift(m, Gate::cpu);
  const double io = std::numbers::sqrt2 * drift(m, Gate::io);
  profile.floors = {compute, io, std::hypot(compute, io)};
  return profile;
}

}  // namespace tidegate::calib
