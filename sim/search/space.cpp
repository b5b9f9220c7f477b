#include "sim/search/space.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

constexpr double most_combinations = 200'000;

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// At commas outside brackets, braces and quotes.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.emplace_back();
      continue;
    }
    parts.back() += c;
  }
  for (std::string& part : parts) part = trimmed(part);
  return parts;
}

// The scalar at a dotted key, if there is one.
const yaml::Value* scalar_at(const yaml::Value& root, const std::string& key) {
  const yaml::Value* at = &root;
  for (std::size_t from = 0; from <= key.size() && at != nullptr;) {
    const std::size_t end = std::min(key.find('.', from), key.size());
    at = at->kind == yaml::Value::Kind::map ? at->find(key.substr(from, end - from)) : nullptr;
    from = end + 1;
  }
  return at != nullptr && at->kind == yaml::Value::Kind::scalar ? at : nullptr;
}

}  // namespace

std::string set_text(const yaml::Value& value) {
  std::string text;
  switch (value.kind) {
    case yaml::Value::Kind::null:
      return "null";
    case yaml::Value::Kind::scalar:
      return value.quoted ? yaml::word(value.text) : value.text;
    case yaml::Value::Kind::sequence:
      for (const yaml::Value& item : value.items)
        text += (text.empty() ? "" : ", ") + set_text(item);
      return "[" + text + "]";
    case yaml::Value::Kind::map:
      for (const yaml::Entry& entry : value.entries)
        text += (text.empty() ? "" : ", ") + entry.key + ": " + set_text(entry.value);
      return "{" + text + "}";
  }
  return text;
}

bool Space::applies(std::size_t axis, const Picks& picks) const {
  const Axis& mine = axes[axis];
  if (mine.needs.empty()) return true;
  const auto other = std::ranges::find(axes, mine.needs, &Axis::name);
  ensure(other != axes.end(), "an axis needs another of the space");
  const auto chosen = picks[static_cast<std::size_t>(other - axes.begin())];
  return std::ranges::find(mine.needed_tags, other->options[chosen].tag) != mine.needed_tags.end();
}

std::vector<Override> Space::sets_of(const Picks& picks) const {
  std::vector<Override> sets;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const auto& mine = axes[a].options[picks[a]].sets;
    sets.insert(sets.end(), mine.begin(), mine.end());
  }
  for (std::size_t a = axes.size(); a-- > 0;) {
    const auto& opens = axes[a].options[picks[a]].opens;
    const auto is_below = [&](const Override& o) {
      return o.first.starts_with(opens->first + ".");
    };
    if (opens && std::ranges::any_of(sets, is_below)) sets.insert(sets.begin(), *opens);
  }
  return sets;
}

std::vector<std::string> Space::changes_of(const Picks& picks) const {
  std::vector<std::string> names;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (!axes[a].options[picks[a]].is_today) names.push_back(axes[a].name);
  }
  return names;
}

std::size_t Space::count_changes(const Picks& picks) const {
  std::size_t count = 0;
  for (std::size_t a = 0; a < axes.size(); ++a)
    count += axes[a].options[picks[a]].is_today ? 0U : 1U;
  return count;
}

std::vector<Picks> Space::crossed_picks() const {
  std::vector<Picks> all;
  Picks picks = today();
  for (bool is_over = crossed == 0 && !axes.empty(); !is_over;) {
    bool is_one = true;
    for (std::size_t a = 0; a < crossed; ++a) is_one &= picks[a] == 0 || applies(a, picks);
    if (is_one) all.push_back(picks);
    std::size_t a = crossed;
    while (a > 0 && ++picks[a - 1] == axes[a - 1].options.size()) picks[--a] = 0;
    is_over = a == 0;
  }
  if (all.empty()) all.push_back(picks);
  return all;
}

double Space::size() const {
  double count = 0;
  for (const Picks& picks : crossed_picks()) {
    double mine = 1;
    for (std::size_t a = crossed; a < axes.size(); ++a) {
      if (applies(a, picks)) mine *= static_cast<double>(axes[a].options.size());
    }
    count += mine;
  }
  return count;
}

Axis read_axis(const std::string& text, const yaml::Value& scenario) {
  const std::size_t equals = text.find('=');
  const auto problem = [&](const std::string& what) {
    return InputError(fmt::format(
        "--over {}: {}; write key=v1,v2,..., for example policy.optimizer.buffer_count=8,16,32",
        text, what));
  };
  if (equals == std::string::npos) throw problem("has no values");
  if (equals == 0) throw problem("has no key");
  Axis axis{.name = text.substr(0, equals), .options = {}};
  const yaml::Value* now = scalar_at(scenario, axis.name);
  for (const std::string& value : split(text.substr(equals + 1))) {
    if (value.empty()) throw problem("has an empty value");
    const bool is_known =
        std::ranges::find(axis.options, value, &Option::tag) != axis.options.end();
    if (is_known) throw problem(fmt::format("has {} twice", value));
    axis.options.push_back({value, {{axis.name, value}}, now != nullptr && now->text == value});
  }
  return axis;
}

Space grid_of(const std::vector<std::string>& texts, const yaml::Value& scenario) {
  Space space;
  double count = 1;
  for (const std::string& text : texts) {
    Axis axis = read_axis(text, scenario);
    if (std::ranges::find(space.axes, axis.name, &Axis::name) != space.axes.end()) {
      throw InputError(
          fmt::format("--over {}: the key comes twice; give all its values at once", axis.name));
    }
    count *= static_cast<double>(axis.options.size());
    space.axes.push_back(std::move(axis));
  }
  if (count > most_combinations) {
    throw InputError(fmt::format("--over: {:.0f} combinations; at most {:.0f} are looked at", count,
                                 most_combinations));
  }
  space.crossed = space.axes.size();
  return space;
}

}  // namespace tidegate
