#include "calib/profile/values.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "models/base/yaml.hpp"

namespace tidegate::calib {
namespace {

using yaml::Value;
namespace fs = std::filesystem;

std::optional<double> number_of(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && rest == end) return number;
  std::string ignored;
  for (const auto dimension : {Dimension::bytes, Dimension::flops, Dimension::seconds,
                               Dimension::bytes_per_second, Dimension::flops_per_second}) {
    if (parse_quantity(text, dimension, number, ignored)) return number;
  }
  return std::nullopt;
}

double uncertainty_of(const Value& value, const std::string& key) {
  double percent = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [rest, error] = std::from_chars(value.text.data(), end, percent);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (error != std::errc() || unit != "%" || !(percent >= 0)) {
    throw InputError(
        value.where, key + ".uncertainty",
        "is '" + value.text + "'; write one standard deviation in percent, such as 5 %");
  }
  return percent / 100;
}

std::string flat(const Value& value) {
  if (value.kind != Value::Kind::sequence) return value.text;
  std::string text;
  for (const Value& item : value.items) text += (text.empty() ? "" : ", ") + flat(item);
  return "[" + text + "]";
}

ProfileValue leaf(const Value& map, const Value& value, const std::string& key) {
  ProfileValue v{.key = key, .text = flat(value)};
  if (value.kind == Value::Kind::scalar) v.number = number_of(value.text);
  for (const Value& point : value.items) {
    const bool is_pair = point.items.size() == 2;
    const auto x = is_pair ? number_of(point.items[0].text) : std::nullopt;
    const auto y = is_pair ? number_of(point.items[1].text) : std::nullopt;
    if (!x || !y) throw InputError(point.where, key, "is not a point; write [size, efficiency]");
    v.curve.emplace_back(*x, *y);
  }
  if (const Value* u = map.find("uncertainty")) v.uncertainty = uncertainty_of(*u, key);
  if (const Value* source = map.find("source")) v.origin = source->text;
  if (const Value* assumed = map.find("assumed")) {
    v.origin = assumed->text;
    v.is_assumed = true;
  }
  return v;
}

class Collector {
 public:
  explicit Collector(const std::string& file) : folder_(fs::path(file).parent_path()) {}

  void collect(const Value& map, const std::string& key) {
    const Value* value = map.find("value");
    if (value == nullptr) value = map.find("points");
    if (value != nullptr) {
      values.push_back(leaf(map, *value, key));
      return;
    }
    for (const yaml::Entry& entry : map.entries) {
      if (key.empty() && entry.key == "calibration") continue;
      if (entry.value.kind != Value::Kind::map) continue;
      collect(entry.value, key.empty() ? entry.key : key + "." + entry.key);
    }
    if (const Value* component = map.find("component")) take(*component, map, key);
  }

  std::vector<ProfileValue> values;

 private:
  // The values of a component that the part does not give itself.
  void take(const Value& component, const Value& part, const std::string& key) {
    const std::string path = (folder_ / component.text).string();
    if (!fs::is_regular_file(path)) {
      throw InputError(component.where, key + ".component", "there is no file " + path);
    }
    Value file = yaml::load_file(path);
    std::erase_if(file.entries,
                  [&part](const yaml::Entry& e) { return part.find(e.key) != nullptr; });
    collect(file, key);
  }

  fs::path folder_;
};

}  // namespace

ProfileValues values_of(const std::string& path) {
  const Value root = yaml::load_file(path);
  const Value* kind = root.find("kind");
  if (kind == nullptr || kind->text != "node") {
    throw InputError(kind ? kind->where : root.where, "kind",
                     (kind ? "is '" + kind->text + "'" : "is missing") +
                         std::string("; a profile of the kind node is expected"));
  }
  Collector collector(path);
  collector.collect(root, "");
  const auto text = [&root](const char* key) {
    const Value* value = root.find(key);
    return value ? value->text : std::string();
  };
  return {text("name"), text("description"), std::move(collector.values)};
}

}  // namespace tidegate::calib
