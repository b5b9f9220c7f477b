#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

#include "sim/search/grid.hpp"

namespace tidegate {
namespace {

struct Number {
  double value = 0;
  std::string unit;
};

std::optional<Number> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(value)) return std::nullopt;
  return Number{value, end};
}

/// A grid of two keys, seen from one of them.
struct View {
  std::size_t key = 0, over = 1;         ///< places in a candidate's sets
  std::vector<std::string> xs, choices;  ///< values of both: in their order, as they came
};

std::vector<std::string> values_at(const Tuning& t, std::size_t place) {
  std::vector<std::string> values;
  for (const Candidate& c : t.all) {
    const std::string& value = c.sets[place].second;
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  return values;
}

// In the order of their numbers; empty where they are none, or of several units.
std::vector<std::string> ordered(std::vector<std::string> values) {
  std::vector<std::pair<double, std::string>> numbers;
  std::string unit;
  for (const std::string& value : values) {
    const auto number = number_of(value);
    if (!number || (!numbers.empty() && number->unit != unit)) return {};
    unit = number->unit;
    numbers.emplace_back(number->value, value);
  }
  std::ranges::sort(numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) values[i] = numbers[i].second;
  return values;
}

std::optional<View> view_of(const Tuning& t) {
  const bool is_of_two = !t.all.empty() && std::ranges::all_of(t.all, [](const Candidate& c) {
    return c.sets.size() == 2;
  });
  if (!is_of_two) return std::nullopt;
  const std::vector<std::string> values[] = {values_at(t, 0), values_at(t, 1)};
  for (const std::size_t key : {std::size_t{0}, std::size_t{1}}) {
    const std::size_t over = 1 - key;
    std::vector<std::string> xs = ordered(values[key]);
    if (xs.size() < 2 || values[over].size() < 2 || !ordered(values[over]).empty()) continue;
    return View{key, over, std::move(xs), values[over]};
  }
  return std::nullopt;
}

// The choices at one value of the key.
Crossing::Range range_at(const Tuning& t, const View& view, const std::string& x) {
  std::map<std::string, Seconds> paces;
  Seconds least(std::numeric_limits<double>::infinity());
  for (const Candidate& c : t.all) {
    if (c.sets[view.key].second != x || !c.is_acceptable()) continue;
    paces[c.sets[view.over].second] = c.trial->pace();
    least = std::min(least, c.trial->pace());
  }
  Crossing::Range range{.from = x, .to = x, .fastest = {}, .next = "", .least = 0, .most = 0};
  Seconds next(std::numeric_limits<double>::infinity());
  for (const std::string& choice : view.choices) {
    const auto at = paces.find(choice);
    if (at == paces.end()) continue;
    if (at->second / least - 1 < t.margin) {
      range.fastest.push_back(choice);
    } else if (at->second < next) {
      next = at->second, range.next = choice;
    }
  }
  if (!range.next.empty()) range.least = range.most = next / least - 1;
  return range;
}

// Ranges are one where the same choices lead, and another choice fits in both or in neither.
bool joins(const Crossing::Range& a, const Crossing::Range& b) {
  return a.fastest == b.fastest && a.next.empty() == b.next.empty();
}

}  // namespace

std::optional<Crossing> crossing_of(const TuneReport& r) {
  const auto view = view_of(r.tuning);
  if (!view) return std::nullopt;
  Crossing crossing{.key = r.axes[view->key], .over = r.axes[view->over], .ranges = {}};
  for (const std::string& x : view->xs) {
    Crossing::Range range = range_at(r.tuning, *view, x);
    if (crossing.ranges.empty() || !joins(crossing.ranges.back(), range)) {
      crossing.ranges.push_back(std::move(range));
      continue;
    }
    Crossing::Range& last = crossing.ranges.back();
    last.to = range.to;
    if (last.next != range.next) last.next = "the next";
    last.least = std::min(last.least, range.least);
    last.most = std::max(last.most, range.most);
  }
  return crossing;
}

}  // namespace tidegate
