#include "models/calibration.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <string_view>

namespace tidegate {
namespace {

using yaml::Bound;
using yaml::Map;
using yaml::Node;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::array<std::string_view, 3> verdicts = {"ok", "suspected", "not_told"};
constexpr std::array<const char*, 12> host_keys = {
    "id",     "cpu",        "kernel",       "distribution", "cores",    "numa_nodes",
    "memory", "hypervisor", "clock_source", "huge_pages",   "governor", "quota_cores"};

// "5 %" as 0.05; "inf %" and null could not be told.
double percent(const Node& node) {
  if (node.is_null()) return infinity;
  const std::string text = node.text();
  const char* const end = text.data() + text.size();
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (error != std::errc() || unit != "%" || !(value >= 0)) {
    node.problem("is '" + text + "'; write a part in percent, such as 5 %");
    return 0;
  }
  return value / 100;
}
double percent_or_none(Map& in, const char* key) {
  const auto node = in.find(key);
  return node ? percent(*node) : infinity;
}

// A bound; null could not be told.
double bound(const Node& node) { return node.is_null() ? infinity : node.number(); }

Calibration::Texts texts(const Node& node) {
  Calibration::Texts all;
  if (node.is_null()) return all;
  Map in = node.map();
  for (const auto& [key, value] : in.all()) all.emplace_back(key, value.text());
  return all;
}

Calibration::Texts read_host(const Node& node) {
  Calibration::Texts facts;
  Map in = node.map();
  for (const char* key : host_keys) {
    const auto fact = in.find(key);
    if (fact && !fact->is_null()) facts.emplace_back(key, fact->text());
  }
  return facts;
}

Calibration::Gate read_gate(const Node& node) {
  Map in = node.map();
  return {.accepted = in.count_or("accepted", 0),
          .rejected = in.count_or("rejected", 0),
          .foreign_cores = in.number_or("foreign_cores", 0, 0, 1e6),
          .foreign_io = in.quantity_or("foreign_io", BytesPerSecond(0), Bound::non_negative)};
}

Calibration::Raw read_raw(const Node& node) {
  Map in = node.map();
  return {.file = in.text("file"),
          .fnv1a = in.text_or("fnv1a", ""),
          .blocks = in.count_or("blocks", 0)};
}

Calibration::ErrorFloor read_floor(const Node& node) {
  Map in = node.map();
  return {.compute_bound = percent(in.at("compute_bound")),
          .io_bound = percent(in.at("io_bound")),
          .overlapped = percent(in.at("overlapped"))};
}

Calibration::Noise read_noise(const std::string& kind, const Node& node) {
  Map in = node.map();
  return {.kind = kind,
          .spread = percent(in.at("spread")),
          .freedom = in.at("freedom").number(0, infinity)};
}

Calibration::Canary read_canary(const std::string& name, const Node& node) {
  Map in = node.map();
  return {.name = name,
          .samples = in.count_or("samples", 0),
          .spread = percent_or_none(in, "spread"),
          .drift = percent_or_none(in, "drift")};
}

Calibration::Check read_check(const std::string& name, const Node& node) {
  Map in = node.map();
  return {.name = name,
          .verdict = static_cast<Calibration::Verdict>(in.at("verdict").choice(verdicts)),
          .evidence = in.text_or("evidence", "")};
}

Calibration::Parameter read_parameter(const std::string& name, const Node& node) {
  const std::vector<Node> items = node.items();
  if (items.size() != 3) {
    node.problem("is not a parameter; write [value, low, high] of its 95 % interval");
    return {.name = name};
  }
  return {.name = name,
          .value = items[0].number(),
          .low = items[1].is_null() ? 0 : items[1].number(),
          .high = bound(items[2])};
}

std::vector<std::pair<double, double>> read_domain(const Node& node) {
  std::vector<std::pair<double, double>> domain;
  for (const Node& side : node.items()) {
    const std::vector<Node> ends = side.items();
    if (ends.size() == 2) domain.emplace_back(ends[0].number(), ends[1].number());
    if (ends.size() != 2 || domain.back().first > domain.back().second) {
      side.problem("is no range; write [least, most]");
    }
  }
  return domain;
}

Calibration::Fit read_fit(const std::string& quantity, const Node& node) {
  Map in = node.map();
  Calibration::Fit fit{.quantity = quantity, .form = in.text("form")};
  {
    Map parameters = in.at("parameters").map();
    for (const auto& [name, value] : parameters.all()) {
      fit.parameters.push_back(read_parameter(name, value));
    }
  }
  if (const auto of = in.find("of")) {
    Map rows = of->map();
    for (const auto& [name, value] : rows.all()) fit.of.emplace_back(name, value.number());
  }
  fit.residual = percent_or_none(in, "residual");
  fit.held_out_setting = percent_or_none(in, "held_out_setting");
  fit.held_out_pass = percent_or_none(in, "held_out_pass");
  fit.measurement = percent_or_none(in, "measurement");
  fit.is_used = in.flag_or("used", false);
  if (const auto domain = in.find("domain")) fit.domain = read_domain(*domain);
  return fit;
}

Calibration::Table read_table(const std::string& quantity, const Node& node) {
  Map in = node.map();
  Calibration::Table table{.quantity = quantity, .unit = in.text("unit")};
  for (const Node& name : in.at("coordinates").items()) table.coordinates.push_back(name.text());
  for (const Node& row : in.at("rows").items()) {
    std::vector<double> numbers;
    for (const Node& item : row.items()) numbers.push_back(bound(item));
    if (numbers.size() != table.coordinates.size() + 4) {
      row.problem(fmt::format("has {} numbers; {} are expected: {}value, low, high, blocks",
                              numbers.size(), table.coordinates.size() + 4,
                              table.coordinates.empty() ? "" : "its coordinates, "));
      continue;
    }
    table.rows.push_back(std::move(numbers));
  }
  return table;
}

Calibration::Spread read_spread(const std::string& row, const Node& node) {
  const std::vector<Node> items = node.items();
  if (items.size() == 3) {
    return {row, items[0].number(), items[1].number(), items[2].number()};
  }
  node.problem("is no spread; write [least, median, most] over the nodes");
  return {.row = row};
}

// Each entry of the map at `key`, if it is there.
template <class T>
void read_all(Map& in, const char* key, std::vector<T>& all,
              T (*read)(const std::string&, const Node&)) {
  const auto node = in.find(key);
  if (!node || node->is_null()) return;
  Map entries = node->map();
  for (const auto& [name, value] : entries.all()) all.push_back(read(name, value));
}

void read_nodes(const Node& node, Calibration& c) {
  Map in = node.map();
  c.nodes = in.count("count", 1);
  if (const auto slow = in.find("slow")) c.slow_nodes = texts(*slow);
  read_all(in, "spread", c.spreads, read_spread);
}

}  // namespace

const char* name_of(Calibration::Verdict verdict) {
  return verdicts.at(static_cast<std::size_t>(verdict)).data();
}

Calibration read_calibration(const Node& node) {
  Map in = node.map();
  Calibration c{.tool = in.text("tool"),
                .created = in.text("created"),
                .command = in.text_or("command", ""),
                .is_complete = in.flag_or("complete", true),
                .seconds = in.number_or("seconds", 0, 0, infinity),
                .seed = in.count_or("seed", 0),
                .passes = in.count_or("passes", 0)};
  if (const auto host = in.find("host")) c.host = read_host(*host);
  if (const auto gate = in.find("gate")) c.gate = read_gate(*gate);
  if (const auto raw = in.find("raw")) c.raw = read_raw(*raw);
  if (const auto floor = in.find("error_floor")) c.error_floor = read_floor(*floor);
  read_all(in, "noise", c.noise, read_noise);
  read_all(in, "canaries", c.canaries, read_canary);
  read_all(in, "checks", c.checks, read_check);
  read_all(in, "fits", c.fits, read_fit);
  read_all(in, "tables", c.tables, read_table);
  if (const auto missing = in.find("not_measured")) c.not_measured = texts(*missing);
  if (const auto nodes = in.find("nodes")) read_nodes(*nodes, c);
  return c;
}

std::optional<Calibration> load_calibration(const std::string& path) {
  yaml::Document document(yaml::load_file(path));
  std::optional<Calibration> calibration;
  {
    Map root = document.root().map();
    root.ignore_rest();
    if (const auto node = root.find("calibration")) calibration = read_calibration(*node);
  }
  document.finish();
  return calibration;
}

}  // namespace tidegate
