#include "models/calibration.hpp"

#include <array>
#include <charconv>
#include <string_view>

namespace tidegate {
namespace {

constexpr double no_limit = 1e300;

void read_host(const yaml::Node& node) {
  yaml::Map map = node.map();
  for (const char* key : {"id", "cpu", "kernel", "hypervisor", "clock_source", "huge_pages"}) {
    map.text_or(key, "");
  }
  map.count_or("cores", 1, 1);
  map.count_or("numa_nodes", 1, 1);
  map.quantity_or("memory", Bytes(0));
  map.number_or("quota_cores", 0, 0, no_limit);
}

void read_gate(const yaml::Node& node) {
  yaml::Map map = node.map();
  map.count_or("accepted", 0);
  map.count_or("rejected", 0);
  map.number_or("foreign_cores", 0, 0, no_limit);
  map.quantity_or("foreign_io", BytesPerSecond(0), yaml::Bound::non_negative);
}

void read_raw(const yaml::Node& node) {
  yaml::Map map = node.map();
  map.text("file");
  map.text("fnv1a");
  map.count_or("blocks", 0);
}

void read_canaries(const yaml::Node& node) {
  yaml::Map map = node.map();
  for (const auto& [name, canary] : map.all()) {
    yaml::Map one = canary.map();
    one.count("samples", 1);
    read_percent(one.at("spread"));
    read_percent(one.at("drift"));
  }
}

void read_checks(const yaml::Node& node) {
  constexpr std::array<std::string_view, 3> verdicts = {"ok", "suspected", "not_told"};
  yaml::Map map = node.map();
  for (const auto& [name, check] : map.all()) {
    yaml::Map one = check.map();
    one.at("verdict").choice(verdicts);
    one.text("evidence");
  }
}

void read_numbers(const yaml::Node& node) {
  for (const yaml::Node& item : node.items()) {
    if (item.value().kind != yaml::Value::Kind::null) item.number(-no_limit, no_limit);
  }
}

void read_fits(const yaml::Node& node) {
  yaml::Map map = node.map();
  for (const auto& [quantity, fit] : map.all()) {
    yaml::Map one = fit.map();
    one.text("form");
    yaml::Map parameters = one.at("parameters").map();
    for (const auto& [name, value] : parameters.all()) read_numbers(value);
    for (const char* key : {"residual", "held_out_setting", "held_out_pass", "measurement"}) {
      if (const auto error = one.find(key)) read_percent(*error);
    }
    one.flag_or("used", false);
    for (const yaml::Node& range : one.at("domain").items()) read_numbers(range);
  }
}

void read_tables(const yaml::Node& node) {
  yaml::Map map = node.map();
  for (const auto& [quantity, table] : map.all()) {
    yaml::Map one = table.map();
    const std::size_t coordinates = one.at("coordinates").items().size();
    one.text("unit");
    constexpr std::size_t values = 4;  // median, low, high, blocks
    for (const yaml::Node& row : one.at("rows").items()) {
      read_numbers(row);
      if (row.items().size() != coordinates + values) {
        row.problem("has not one number for each coordinate, then value, low, high and blocks");
      }
    }
  }
}

void read_nodes(const yaml::Node& node) {
  yaml::Map map = node.map();
  map.count("count", 1);
  yaml::Map slow = map.at("slow").map();
  for (const auto& [name, evidence] : slow.all()) evidence.text();
  yaml::Map spread = map.at("spread").map();
  for (const auto& [row, values] : spread.all()) read_numbers(values);
}

}  // namespace

double read_percent(const yaml::Node& node) {
  const std::string text = node.text();
  const char* const end = text.data() + text.size();
  double percent = 0;
  if (text == "inf %") return no_limit;  // an error that cannot be told
  const auto [rest, error] = std::from_chars(text.data(), end, percent);
  if (error == std::errc() && std::string_view(rest, end) == " %" && percent >= 0) {
    return percent / 100;
  }
  node.problem("is '" + text + "'; write a percentage such as 5 %");
  return 0;
}

Calibration read_calibration(const yaml::Node& node) {
  Calibration c{.is_measured = true};
  yaml::Map map = node.map();
  map.text("tool");
  map.text("created");
  map.text_or("command", "");
  c.is_complete = map.flag_or("complete", true);
  map.number_or("seconds", 0, 0, no_limit);
  map.count_or("seed", 0);
  map.count_or("passes", 1, 1);
  if (const auto floor = map.find("error_floor")) {
    yaml::Map floors = floor->map();
    c.compute_floor = read_percent(floors.at("compute_bound"));
    c.io_floor = read_percent(floors.at("io_bound"));
    c.overlapped_floor = read_percent(floors.at("overlapped"));
  }
  const auto part = [&map](const char* key, void (*read)(const yaml::Node&)) {
    if (const auto found = map.find(key)) read(*found);
  };
  part("host", read_host);
  part("gate", read_gate);
  part("raw", read_raw);
  part("canaries", read_canaries);
  part("nodes", read_nodes);
  part("checks", read_checks);
  part("fits", read_fits);
  part("tables", read_tables);
  part("not_measured", [](const yaml::Node& reasons) {
    yaml::Map all = reasons.map();
    for (const auto& [name, reason] : all.all()) reason.text();
  });
  return c;
}

}  // namespace tidegate
