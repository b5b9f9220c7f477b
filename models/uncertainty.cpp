#include "models/uncertainty.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <string>

#include <fmt/core.h>

namespace tidegate {
namespace {

// Box and Muller 1958: the same numbers with every standard library.
double normal(std::mt19937_64& random) {
  constexpr double steps = 9007199254740992.0;  // 2^53
  const double u = (static_cast<double>(random() >> 11) + 1) / steps;
  const double v = static_cast<double>(random() >> 11) / steps;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

// "5 %" as 0.05; 0 where there is none. What is malformed, the reader has refused.
double uncertainty_of(const yaml::Value& leaf) {
  const yaml::Value* text = leaf.find("uncertainty");
  if (text == nullptr) return 0;
  double percent = 0;
  std::from_chars(text->text.data(), text->text.data() + text->text.size(), percent);
  return percent / 100;
}

// "6.9 GB/s" times 1.1 is "7.59 GB/s".
void scale(std::string& text, double factor, double most) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return;
  const std::string unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  text = fmt::format("{:.17g}{}", std::min(number * factor, most), unit);
}

bool is_count(const std::string& key) {
  return key == "numa_nodes" || key == "cores" || key == "gpudirect";
}
// Fractions of something stay fractions.
double most_of(const std::string& key) {
  const bool is_fraction = key.ends_with("_efficiency") || key == "efficiency" ||
                           key == "pageable_factor" || key == "collective_compute_fraction";
  return is_fraction ? 1 : HUGE_VAL;
}

yaml::Value* child(yaml::Value& map, const char* key) {
  const auto at = std::ranges::find(map.entries, key, &yaml::Entry::key);
  return at == map.entries.end() ? nullptr : &at->value;
}

void draw_leaf(const std::string& key, yaml::Value& leaf, std::mt19937_64& random) {
  const double u = uncertainty_of(leaf);
  if (u == 0 || is_count(key)) return;
  const double factor = std::exp(std::sqrt(std::log1p(u * u)) * normal(random));
  if (yaml::Value* value = child(leaf, "value")) scale(value->text, factor, most_of(key));
  if (yaml::Value* points = child(leaf, "points")) {
    for (yaml::Value& point : points->items) {
      if (point.items.size() == 2) scale(point.items[1].text, factor, 1);
    }
  }
}

bool is_leaf(const yaml::Value& value) {
  return value.find("value") != nullptr || value.find("points") != nullptr;
}

template <class Visit>
void each_leaf(yaml::Value& map, Visit&& visit) {
  for (yaml::Entry& entry : map.entries) {
    if (entry.key == "calibration") continue;
    if (is_leaf(entry.value)) {
      visit(entry.key, entry.value);
    } else {
      each_leaf(entry.value, visit);
    }
  }
}

}  // namespace

yaml::Value drawn(yaml::Value values, std::mt19937_64& random) {
  each_leaf(values,
            [&random](const std::string& key, yaml::Value& leaf) { draw_leaf(key, leaf, random); });
  return values;
}

Known known(const yaml::Value& values) {
  Known count;
  yaml::Value copy = values;
  each_leaf(copy, [&count](const std::string& key, const yaml::Value& leaf) {
    if (is_count(key)) return;
    const yaml::Value* value = leaf.find("value");
    const bool is_rate =
        value != nullptr && (value->text.ends_with("/s") || value->text.ends_with("s"));
    if (uncertainty_of(leaf) > 0) {
      ++count.uncertain;
    } else if (is_rate || leaf.find("points") != nullptr) {
      ++count.silent;
    }
  });
  return count;
}

}  // namespace tidegate
