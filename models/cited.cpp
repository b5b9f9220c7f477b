#include "models/cited.hpp"

#include <algorithm>
#include <charconv>

namespace tidegate {
namespace {

constexpr const char* overridden = "overridden for this run";

bool is_override(const yaml::Node& node) { return node.where().file == override_name; }

// "5 %" as 0.05.
double uncertainty(const yaml::Node& node) {
  const std::string text = node.text();
  const char* const end = text.data() + text.size();
  double percent = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, percent);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (error != std::errc() || unit != "%" || !(percent >= 0 && percent <= 100)) {
    node.problem("is '" + text + "'; write one standard deviation in percent, such as 5 %");
    return 0;
  }
  return percent / 100;
}

std::string plain_text(const yaml::Value& value) {
  if (value.kind != yaml::Value::Kind::sequence) return value.text;
  std::string text;
  for (const yaml::Value& item : value.items) {
    text += (text.empty() ? "" : ", ") + plain_text(item);
  }
  return "[" + text + "]";
}

double size_of(const yaml::Node& node, Dimension dimension) {
  return dimension == Dimension::flops ? node.quantity<Flops>().value()
                                       : node.quantity<Bytes>().value();
}

}  // namespace

bool CitedMap::is_overridden(const std::string& key) {
  const auto node = map_.find(key);
  if (!node) return false;
  const yaml::Value* inner = node->value().find("value");
  return is_override(*node) || (inner != nullptr && inner->where.file == override_name);
}

void CitedMap::doubt_last(std::string why) {
  provenance_->back().assumed = true;
  provenance_->back().source = std::move(why);
}

void CitedMap::record(const yaml::Node& value, yaml::Map& leaf) {
  Provenance entry{.key = leaf.node().path(), .value = plain_text(value.value())};
  const auto source = leaf.find("source");
  const auto assumed = leaf.find("assumed");
  if (source && assumed) {
    assumed->problem("stands beside a source; keep one");
  } else if (source || assumed) {
    entry.source = (source ? *source : *assumed).text();
    if (entry.source.empty()) (source ? *source : *assumed).problem("is empty; say it in words");
  } else if (!is_override(value)) {
    leaf.node().problem("has no origin; add source: where it is from, or assumed: why");
  }
  if (const auto deviation = leaf.find("uncertainty")) entry.uncertainty = uncertainty(*deviation);
  entry.assumed = assumed.has_value() || is_override(value);
  if (is_override(value) && entry.source.empty()) entry.source = overridden;
  provenance_->push_back(std::move(entry));
}

yaml::Node CitedMap::cited(const std::string& key, const std::string& inner) {
  const yaml::Node node = map_.at(key);
  if (node.is_map()) {
    yaml::Map leaf = node.map();
    const yaml::Node value = leaf.at(inner);
    record(value, leaf);
    return value;
  }
  if (is_override(node)) {
    provenance_->push_back({node.path(), plain_text(node.value()), overridden, 0, true});
  } else if (node.is_scalar()) {
    node.problem("has no origin; write {value: " + node.value().text +
                 ", source: where it is from} or {value: …, assumed: why}");
  } else {
    node.problem("is not a cited value; write {value: …, source: …} or {value: …, assumed: …}");
  }
  return node;
}

Curve CitedMap::efficiency(const std::string& key, Dimension size) {
  constexpr double least = 1e-6;
  const yaml::Node node = map_.at(key);
  if (!node.is_map() || node.value().find("points") == nullptr) {
    return Curve(cited(key, "value").number(least, 1));
  }
  const yaml::Node list = cited(key, "points");
  std::vector<std::pair<double, double>> points;
  for (const yaml::Node& item : list.items()) {
    const std::vector<yaml::Node> pair = item.items();
    if (pair.size() != 2) {
      item.problem("is not a point; write [size, efficiency]");
      continue;
    }
    points.emplace_back(size_of(pair[0], size), pair[1].number(least, 1));
  }
  std::ranges::sort(points);
  const auto same = std::ranges::adjacent_find(points, {}, &std::pair<double, double>::first);
  if (points.empty() || same != points.end()) {
    list.problem(points.empty() ? "has no points" : "has two points of one size; keep one");
    return Curve(1);
  }
  return Curve(std::move(points));
}

void CitedMap::assume(const std::string& key, std::string value, std::string why) {
  provenance_->push_back(
      {map_.node().path() + "." + key, std::move(value), std::move(why), 0, true});
}

}  // namespace tidegate
