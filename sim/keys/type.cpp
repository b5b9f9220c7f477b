#include "sim/keys/type.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/core.h>

namespace tidegate {
namespace {

using Kind = Type::Kind;

struct Plain {
  std::string_view word;
  Kind kind;
  std::string_view people, example;
};
constexpr std::array plain_kinds = {
    Plain{"text", Kind::text, "text", "a name"},
    Plain{"file", Kind::file, "a file", "config.json"},
    Plain{"path", Kind::path, "the name of a storage path of the profile", "nvme"},
    Plain{"flag", Kind::flag, "true or false", "true"},
    Plain{"null", Kind::null, "nothing (~)", "~"},
    Plain{"name", Kind::name, "a name of the list below", ""},
    Plain{"numbers", Kind::numbers, "a list of numbers", "[1, 2]"},
    Plain{"percent", Kind::percent, "a part in percent", "5 %"},
    Plain{"map", Kind::map, "a map of keys", "{}"},
};

struct Unit {
  std::string_view word;
  Dimension dimension;
  std::string_view example;
};
constexpr std::array units = {
    Unit{"B/s", Dimension::bytes_per_second, "24.6 GB/s"},
    Unit{"B", Dimension::bytes, "2 MiB"},
    Unit{"FLOP/s", Dimension::flops_per_second, "312 TFLOP/s"},
    Unit{"FLOP", Dimension::flops, "1 GFLOP"},
    Unit{"s", Dimension::seconds, "80 us"},
};

const Unit& unit_of(Dimension dimension) {
  for (const Unit& unit : units) {
    if (unit.dimension == dimension) return unit;
  }
  return units.front();
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

bool take(std::string_view& text, std::string_view begin) {
  if (!text.starts_with(begin)) return false;
  text = trimmed(text.substr(begin.size()));
  return true;
}

std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// What stands behind a count, a number or a unit: nothing, "from 1" or "1 to 8".
bool read_bounds(std::string_view text, Type& type) {
  if (text.empty()) return true;
  if (take(text, "from ")) {
    const auto least = number_of(text);
    if (least) type.least = *least, type.is_least_open = false;
    return least.has_value();
  }
  const std::size_t to = text.find(" to ");
  if (to == std::string_view::npos) return false;
  const auto least = number_of(text.substr(0, to)), most = number_of(text.substr(to + 4));
  if (!least || !most) return false;
  type.least = *least, type.most = *most, type.is_least_open = false;
  return true;
}

// A word, and what stands behind it with a space between them.
bool begins_with_word(std::string_view text, std::string_view word) {
  return text == word || (text.starts_with(word) && text[word.size()] == ' ');
}

bool read_measure(std::string_view text, Type& type) {
  if (begins_with_word(text, "count")) {
    type.kind = Kind::count, type.least = 0;
    return read_bounds(trimmed(text.substr(5)), type);
  }
  if (begins_with_word(text, "number")) {
    type.kind = Kind::number;
    return read_bounds(trimmed(text.substr(6)), type);
  }
  for (const Unit& unit : units) {
    if (!begins_with_word(text, unit.word)) continue;
    type.kind = Kind::quantity, type.dimension = unit.dimension;
    type.least = 0, type.is_least_open = true;
    return read_bounds(trimmed(text.substr(unit.word.size())), type);
  }
  return false;
}

std::vector<std::string> listed(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t comma = text.find(',');
    words.emplace_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return words;
    text = text.substr(comma + 1);
  }
}

bool is_identifier(std::string_view text) {
  return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == text.npos;
}

Type read_part(std::string_view text, std::string& problem) {
  Type type;
  for (const Plain& plain : plain_kinds) {
    if (text == plain.word) return type.kind = plain.kind, type;
  }
  for (const auto& [begin, kind] :
       {std::pair{"list of ", Kind::list}, std::pair{"map of ", Kind::map_of}}) {
    if (!take(text, begin)) continue;
    type.kind = kind;
    type.parts.push_back(read_part(text, problem));
    return type;
  }
  if (take(text, "one of ")) {
    type.kind = Kind::words, type.words = listed(text);
    return type;
  }
  if (take(text, "curve over ")) {
    type.kind = Kind::curve;
    if (text != "B" && text != "FLOP") problem = "a curve is over B or over FLOP";
    type.dimension = text == "B" ? Dimension::bytes : Dimension::flops;
    return type;
  }
  if (read_measure(text, type)) return type;
  type.kind = Kind::section, type.words = {std::string(text)};
  if (!is_identifier(text)) problem = fmt::format("'{}' is no type", text);
  return type;
}

std::string bounds_text(const Type& t) {
  const bool has_least = std::isfinite(t.least), has_most = std::isfinite(t.most);
  if (has_least && has_most) return fmt::format(", {:.15g} to {:.15g}", t.least, t.most);
  if (!has_least) return "";
  if (t.is_least_open && t.least == 0) return ", above zero";
  return fmt::format(", at least {:.15g}", t.least);
}

}  // namespace

Type parse_type(std::string_view cell, std::string& problem) {
  std::string_view text = trimmed(cell);
  const bool is_plain = take(text, "plain ");
  std::string remark;
  if (const std::size_t at = text.find('('); at != text.npos && text.ends_with(')')) {
    remark = text.substr(at + 1, text.size() - at - 2);
    text = trimmed(text.substr(0, at));
  }
  if (text.empty()) problem = "the type is missing";
  Type whole;
  whole.kind = Kind::any_of;
  while (true) {
    const std::size_t at = text.find(" or ");
    whole.parts.push_back(read_part(trimmed(text.substr(0, at)), problem));
    if (at == std::string_view::npos) break;
    text = text.substr(at + 4);
  }
  Type type = whole.parts.size() == 1 ? whole.parts.front() : whole;
  type.is_plain = is_plain;
  type.remark = remark;
  return type;
}

std::string to_text(const Type& type) {
  if (!type.remark.empty()) {
    Type bare = type;
    bare.remark.clear();
    return fmt::format("{} ({})", to_text(bare), type.remark);
  }
  const auto joined = [](const auto& items, const char* between, auto text_of) {
    std::string text;
    for (const auto& item : items) text += (text.empty() ? "" : between) + text_of(item);
    return text;
  };
  const auto of_part = [](const Type& t) { return to_text(t); };
  switch (type.kind) {
    case Kind::count:
      return "a whole number" + bounds_text(type);
    case Kind::number:
      return "a number" + bounds_text(type);
    case Kind::quantity:
      return fmt::format("{} with its unit, such as {}{}", describe(type.dimension).noun,
                         unit_of(type.dimension).example, bounds_text(type));
    case Kind::words:
      if (type.words.size() == 1) return type.words.front();
      return "one of: " + joined(type.words, ", ", [](const std::string& w) { return w; });
    case Kind::curve:
      return fmt::format("an efficiency up to 1, or points: [[{}, 0.5], …]",
                         unit_of(type.dimension).example);
    case Kind::list:
      return "a list; of each: " + of_part(type.parts.front());
    case Kind::map_of:
      return "a map by name; of each: " + of_part(type.parts.front());
    case Kind::section:
      return "a map of the keys of " + type.words.front();
    case Kind::any_of:
      return joined(type.parts, "; or ", of_part);
    default:
      break;
  }
  for (const Plain& plain : plain_kinds) {
    if (plain.kind == type.kind) return std::string(plain.people);
  }
  return "";
}

std::string example_of(const Type& type) {
  switch (type.kind) {
    case Kind::count:
      return fmt::format("{:.0f}", std::isfinite(type.most) && type.most < 8 ? type.most : 8);
    case Kind::number:
      if (type.least >= 1000) return "1e9";
      return fmt::format("{}", std::isfinite(type.most) && type.most <= 1
                                   ? 0.5
                                   : std::max(1.0, std::isfinite(type.least) ? type.least : 1));
    case Kind::quantity:
      return std::string(unit_of(type.dimension).example);
    case Kind::words:
      return type.words.front();
    case Kind::curve:
      return "0.7";
    case Kind::list:
      return "[" + example_of(type.parts.front()) + "]";
    case Kind::map_of:
      return "{name: " + example_of(type.parts.front()) + "}";
    case Kind::section:
      return "{…}";
    case Kind::any_of:
      return example_of(type.parts.front());
    default:
      break;
  }
  for (const Plain& plain : plain_kinds) {
    if (plain.kind == type.kind) return std::string(plain.example);
  }
  return "";
}

}  // namespace tidegate
