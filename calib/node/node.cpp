#include "calib/node/node.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/core.h>

#include "calib/node/sections.hpp"

namespace tidegate::calib {
namespace {

// How a quantity is fitted: by the last part of its name, or the whole.
struct FitRule {
  std::string_view quantity;
  Form form;
  std::vector<std::string> coordinates;
};
const std::vector<FitRule>& fit_rules() {
  static const std::vector<FitRule> rules = {
      {"read", Form::queue_saturating, {"block", "depth"}},
      {"write", Form::queue_saturating, {"block", "depth"}},
      {"gds_read", Form::queue_saturating, {"block", "depth"}},
      {"gds_write", Form::queue_saturating, {"block", "depth"}},
      {"dram.read", Form::thread_saturating, {"threads"}},
      {"dram.write", Form::thread_saturating, {"threads"}},
      {"dram.copy", Form::thread_saturating, {"threads"}},
      {"dram.copy_streaming", Form::thread_saturating, {"threads"}},
      {"dram.triad", Form::thread_saturating, {"threads"}},
      {"host_copy", Form::half_size, {"bytes"}},
      {"gpu.h2d", Form::half_size, {"bytes"}},
      {"gpu.d2h", Form::half_size, {"bytes"}},
      {"gpu.memory", Form::half_size, {"bytes"}},
  };
  return rules;
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
    const auto rows = rows_of(m, quantity);
    if (rows.empty()) continue;
    profile.tables.push_back(table_of(quantity, rows));
    const FitRule* rule = rule_for(quantity);
    if (rule == nullptr) continue;
    const std::vector<Point> all = points(rows, rule->coordinates);
    constexpr std::size_t least = 5;  // settings, above the number of parameters of any rule
    if (rows.size() >= least) profile.fits.emplace_back(quantity, fit(rule->form, all));
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
  fit_and_tabulate(profile, m);
  const double compute = std::numbers::sqrt2 * drift(m, Gate::cpu);
  const double io = std::numbers::sqrt2 * drift(m, Gate::io);
  profile.floors = {compute, io, std::hypot(compute, io)};
  return profile;
}

}  // namespace tidegate::calib
