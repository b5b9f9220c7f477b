#include "sim/planner/cited_parts.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include <fmt/core.h>

#include "models/base/yaml.hpp"

namespace tidegate::planner {
namespace {

namespace fs = std::filesystem;

// A number, and the word behind it.
std::optional<std::pair<double, std::string>> split(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  std::string unit(rest, end);
  unit.erase(0, unit.find_first_not_of(' '));
  return std::pair(number, unit);
}

std::vector<std::string> component_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(folder, absent))
    names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace

yaml::Node cited_value(CitedMap& in, const std::string& key) {
  const yaml::Node part = in.plain().node();
  const yaml::Value* own = part.value().find(key);
  const yaml::Value* uncertainty = own != nullptr ? own->find("uncertainty") : nullptr;
  if (uncertainty != nullptr) {
    part.document().problem(uncertainty->where, part.path() + "." + key + ".uncertainty",
                            "has no effect in a catalog; leave it out");
  }
  return in.value(key);
}

double cited_number(CitedMap& in, const std::string& key, double least, double most) {
  return cited_value(in, key).number(least, most);
}

Money cited_money(CitedMap& in, const std::string& key, const std::string& currency) {
  const yaml::Node node = cited_value(in, key);
  const auto parts = node.is_scalar() ? split(node.value().text) : std::nullopt;
  if (!parts || parts->second.empty()) return node.number(0);
  node.problem(
      fmt::format("is '{}'; prices are plain numbers, all in the currency of the file ({})",
                  node.value().text, currency));
  return 0;
}

Watts cited_watts(CitedMap& in, const std::string& key) {
  const yaml::Node node = cited_value(in, key);
  const auto parts = node.is_scalar() ? split(node.value().text) : std::nullopt;
  const double unit = !parts ? 0 : parts->second == "W" ? 1 : parts->second == "kW" ? 1000 : 0;
  if (unit > 0 && parts->first >= 0) return parts->first * unit;
  if (!node.is_null()) {
    node.problem(fmt::format("is '{}'; write a power of zero or more, such as 700 W or 1.2 kW",
                             node.value().text));
  }
  return 0;
}

void read_costs(CitedMap& in, Part& part, const std::string& currency) {
  if (in.has("price")) part.price = cited_money(in, "price", currency);
  part.idle = cited_watts(in, "idle");
  part.busy = cited_watts(in, "busy");
  if (part.busy > 0 && part.busy < part.idle)
    in.plain().at("busy").problem("is less than idle; a busy part draws at least as much");
}

std::string component_file(const yaml::Node& node, const std::string& catalog, const char* kind) {
  const std::string asked = node.text();
  if (asked.empty()) return "";
  const bool is_path = asked.find('/') != std::string::npos || asked.ends_with(".yaml");
  const fs::path folder = fs::path(TIDEGATE_DATA_DIR) / "hw_profiles" / "components";
  const fs::path file =
      is_path ? fs::path(catalog).parent_path() / asked : folder / (asked + ".yaml");
  if (!fs::is_regular_file(file)) {
    const std::string near = is_path ? "" : nearest(asked, component_names(folder));
    node.problem(fmt::format("there is no component '{}'; {}", asked,
                             near.empty() ? "name a file of hw_profiles/components, or a path"
                                          : "did you mean '" + near + "'?"));
    return "";
  }
  const yaml::Value values = yaml::load_file(file.string());
  const yaml::Value* found = values.find("kind");
  if (found == nullptr || found->text != kind) {
    node.problem(fmt::format("'{}' is {}; {} is expected here", asked,
                             found == nullptr ? "no component" : "a " + found->text, kind));
    return "";
  }
  return fs::absolute(file).lexically_normal().string();
}

Bytes endurance_of(const yaml::Node& node, const std::string& component) {
  const auto parts = node.is_scalar() ? split(node.value().text) : std::nullopt;
  if (!parts || parts->second != "DWPD") return node.quantity<Bytes>();
  if (!(parts->first > 0)) {
    node.problem("must be greater than zero");
    return Bytes(0);
  }
  if (component.empty()) return Bytes(0);
  yaml::Document document(yaml::load_file(component), yaml::Document::Faults::dropped);
  std::vector<Provenance> unused;
  CitedMap in(document.root(), unused);
  in.plain().ignore_rest();
  const double warranty = in.number_or("warranty", 5, 0.1, 100);
  return in.quantity<Bytes>("capacity") * (parts->first * warranty * 365);
}

}  // namespace tidegate::planner
