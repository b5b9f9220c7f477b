#include "models/base/yaml.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>

#include <yaml-cpp/yaml.h>

namespace tidegate::yaml {
namespace {

constexpr int deepest = 64;

Where place(const YAML::Mark& mark, const std::string& name) {
  if (mark.is_null()) return {name, 0, 0};
  return {name, mark.line + 1, mark.column + 1};
}

Value convert(const YAML::Node& node, const std::string& name, int depth) {
  Value value;
  value.where = place(node.Mark(), name);
  if (depth > deepest) throw InputError(value.where, "", "nested deeper than 64 levels");
  switch (node.Type()) {
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null:
      break;
    case YAML::NodeType::Scalar:
      value.kind = Value::Kind::scalar;
      value.text = node.Scalar();
      value.quoted = node.Tag() == "!";
      break;
    case YAML::NodeType::Sequence:
      value.kind = Value::Kind::sequence;
      for (const auto& item : node) value.items.push_back(convert(item, name, depth + 1));
      break;
    case YAML::NodeType::Map: {
      value.kind = Value::Kind::map;
      std::set<std::string> seen;
      for (const auto& pair : node) {
        const Where where = place(pair.first.Mark(), name);
        if (!pair.first.IsScalar()) throw InputError(where, "", "a key must be a plain word");
        const std::string key = pair.first.Scalar();
        if (!seen.insert(key).second) {
          throw InputError(where, key, "this key appears twice; keep one");
        }
        value.entries.push_back({key, where, convert(pair.second, name, depth + 1)});
      }
      break;
    }
  }
  return value;
}

std::string kind_name(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::null:
      return "nothing";
    case Value::Kind::scalar:
      return "a single value";
    case Value::Kind::sequence:
      return "a list";
    case Value::Kind::map:
      return "a map";
  }
  return "";
}

std::string found(const Value& value) {
  return value.kind == Value::Kind::scalar ? "'" + value.text + "'" : kind_name(value.kind);
}

std::string listing(std::span<const std::string_view> words) {
  std::string text;
  for (const auto word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Value load_text(const std::string& text, const std::string& name) {
  if (text.find('\0') != std::string::npos) {
    throw InputError({name, 0, 0}, "", "is a binary file; a YAML or JSON text is expected");
  }
  try {
    return convert(YAML::Load(text), name, 0);
  } catch (const YAML::Exception& error) {
    throw InputError(place(error.mark, name), "", "is not YAML: " + error.msg);
  }
}

Value load_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw InputError({path, 0, 0}, "", "is a directory; name a file");
  }
  std::ifstream file(path);
  if (!file) throw InputError({path, 0, 0}, "", "cannot be opened for reading; check the path");
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw InputError({path, 0, 0}, "", "cannot be read to its end");
  return load_text(text.str(), path);
}

std::string word(const std::string& text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr std::string_view more = "0123456789_";
  const auto is_plain = [&](char c) {
    return letters.find(c) != std::string_view::npos || more.find(c) != std::string_view::npos;
  };
  const bool begins = !text.empty() && letters.find(text.front()) != std::string_view::npos;
  if (begins && std::ranges::all_of(text, is_plain) && text != "null") return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

void set(Value& root, const std::string& path, const std::string& text, const Where& where) {
  Value* at = &root;
  std::size_t from = 0;
  while (from < path.size()) {
    if (path[from] == '[') {
      std::size_t index = 0;
      const auto [end, error] =
          std::from_chars(path.data() + from + 1, path.data() + path.size(), index);
      if (error != std::errc() || end == path.data() + path.size() || *end != ']') {
        throw InputError(where, path, "a list index is written [0], [1], …");
      }
      if (at->kind != Value::Kind::sequence || index >= at->items.size()) {
        throw InputError(where, path,
                         fmt::format("index {} is beyond the list of {}", index, at->items.size()));
      }
      at = &at->items[index];
      from = static_cast<std::size_t>(end - path.data()) + 1;
      if (from < path.size() && path[from] == '.') ++from;
      continue;
    }
    const std::size_t end = std::min(path.find_first_of(".[", from), path.size());
    const std::string key = path.substr(from, end - from);
    if (key.empty()) throw InputError(where, path, "has an empty key between dots");
    if (at->kind == Value::Kind::null) at->kind = Value::Kind::map;
    if (at->kind != Value::Kind::map) {
      throw InputError(where, path,
                       fmt::format("'{}' stands inside {}, not a map", key, found(*at)));
    }
    auto entry = std::ranges::find(at->entries, key, &Entry::key);
    if (entry == at->entries.end()) {
      at->entries.push_back({key, where, Value{}});
      entry = std::prev(at->entries.end());
      entry->value.where = where;
    }
    entry->where = where;
    at = &entry->value;
    from = end < path.size() && path[end] == '.' ? end + 1 : end;
  }
  *at = load_text(text, where.file);
  const auto relocate = [&where](auto&& self, Value& v) -> void {
    v.where = where;
    for (Entry& e : v.entries) e.where = where, self(self, e.value);
    for (Value& i : v.items) self(self, i);
  };
  relocate(relocate, *at);
}

void Node::problem(const std::string& text) const { document_->problem(where(), path_, text); }

Map Node::map() const {
  if (!is_map()) problem(fmt::format("is {}; a map of keys is expected", found(*value_)));
  return Map(*this);
}

std::vector<Node> Node::items() const {
  std::vector<Node> nodes;
  if (!is_sequence()) problem(fmt::format("is {}; a list is expected", found(*value_)));
  for (std::size_t i = 0; i < value_->items.size(); ++i) {
    nodes.emplace_back(*document_, &value_->items[i], fmt::format("{}[{}]", path_, i));
  }
  return nodes;
}

std::string Node::text() const {
  if (!is_scalar()) problem(fmt::format("is {}; a word is expected", found(*value_)));
  return value_->text;
}

bool Node::flag() const {
  if (is_scalar()) {
    // 0 and 1 are accepted: DeepSpeed files in the field carry integer flags.
    if (value_->text == "true" || value_->text == "True" || value_->text == "1") return true;
    if (value_->text == "false" || value_->text == "False" || value_->text == "0") return false;
  }
  problem(fmt::format("is {}; write true or false", found(*value_)));
  return false;
}

double Node::number(double least, double most) const {
  double parsed = 0;
  const std::string& t = value_->text;
  const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), parsed);
  if (!is_scalar() || error != std::errc() || end != t.data() + t.size() ||
      !std::isfinite(parsed)) {
    problem(fmt::format("is {}; a number is expected", found(*value_)));
    return std::clamp(1.0, least, most);
  }
  if (parsed < least || parsed > most) {
    const bool open = std::isinf(most);
    problem(open ? fmt::format("is {}; it must be at least {}", t, least)
                 : fmt::format("is {}; it must lie between {} and {}", t, least, most));
    return std::clamp(parsed, least, most);
  }
  return parsed;
}

std::int64_t Node::count(std::int64_t least, std::int64_t most) const {
  const std::string& t = value_->text;
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), whole);
  if (!is_scalar() || error != std::errc() || end != t.data() + t.size()) {
    // "1e8" is how DeepSpeed users write element counts.
    double real = 0;
    const auto [rend, rerror] = std::from_chars(t.data(), t.data() + t.size(), real);
    if (!is_scalar() || rerror != std::errc() || rend != t.data() + t.size() ||
        real != std::floor(real) || std::abs(real) > 9e15) {
      problem(fmt::format("is {}; a whole number is expected", found(*value_)));
      return std::clamp<std::int64_t>(1, least, most);
    }
    whole = static_cast<std::int64_t>(real);
  }
  if (whole < least || whole > most) {
    problem(most == std::numeric_limits<std::int64_t>::max()
                ? fmt::format("is {}; it must be at least {}", whole, least)
                : fmt::format("is {}; it must lie between {} and {}", whole, least, most));
    return std::clamp(whole, least, most);
  }
  return whole;
}

double Node::base_quantity(Dimension dimension, Bound bound) const {
  const auto [noun, units] = describe(dimension);
  double base = 0;
  std::string wrong;
  if (!is_scalar()) {
    problem(fmt::format("is {}; write {} with one of: {}", found(*value_), noun, units));
    return 1;
  }
  if (!parse_quantity(value_->text, dimension, base, wrong)) {
    problem(wrong);
    return 1;
  }
  if (base < 0 || (bound == Bound::positive && base == 0)) {
    problem(fmt::format("'{}' must be {}", value_->text,
                        bound == Bound::positive ? "greater than zero" : "zero or more"));
    return 1;
  }
  // Sums of bytes are whole numbers of 63 bits.
  constexpr double most_bytes = 1e18;
  if (dimension == Dimension::bytes && base > most_bytes) {
    problem(fmt::format("'{}' is more than {} PB; write less", value_->text, most_bytes / 1e15));
    return 1;
  }
  return base;
}

std::size_t Node::choice(std::span<const std::string_view> choices) const {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (is_scalar() && choices[i] == value_->text) return i;
  }
  std::string hint;
  if (is_scalar()) {
    const std::string near = nearest(value_->text, {choices.begin(), choices.end()});
    if (!near.empty()) hint = fmt::format(" (did you mean '{}'?)", near);
  }
  problem(fmt::format("is {}; one of: {}{}", found(*value_), listing(choices), hint));
  return 0;
}

Map::~Map() {
  if (ignore_rest_ || !node_.is_map()) return;
  for (const Entry& entry : node_.value().entries) {
    if (std::ranges::find(asked_, entry.key) != asked_.end()) continue;
    const std::string near = nearest(entry.key, asked_);
    std::string text = "unknown key";
    if (!near.empty()) {
      text += fmt::format("; did you mean '{}'?", near);
    } else {
      std::set<std::string> known(asked_.begin(), asked_.end());
      std::string list;
      for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
      text += "; known here: " + list;
    }
    const std::string path = node_.path().empty() ? entry.key : node_.path() + "." + entry.key;
    node_.document().problem(entry.where, path, text);
  }
}

bool Map::has(const std::string& key) {
  asked_.push_back(key);
  return node_.is_map() && node_.value().find(key) != nullptr;
}

std::optional<Node> Map::find(const std::string& key) {
  if (!has(key)) return std::nullopt;
  const std::string path = node_.path().empty() ? key : node_.path() + "." + key;
  return Node(node_.document(), node_.value().find(key), path);
}

Node Map::at(const std::string& key) {
  static const Value none{};
  if (auto node = find(key)) return *node;
  const std::string path = node_.path().empty() ? key : node_.path() + "." + key;
  if (node_.is_map())
    node_.document().problem(node_.where(), path, "is missing; this key is required");
  // The missing key is said once; readings of the stand-in below must not add noise.
  static Document silent(Value{}, Document::Faults::dropped);
  return Node(silent, &none, path);
}

std::vector<std::pair<std::string, Node>> Map::all() {
  std::vector<std::pair<std::string, Node>> nodes;
  for (const Entry& entry : node_.value().entries) {
    asked_.push_back(entry.key);
    const std::string path = node_.path().empty() ? entry.key : node_.path() + "." + entry.key;
    nodes.emplace_back(entry.key, Node(node_.document(), &entry.value, path));
  }
  return nodes;
}

void Document::problem(Where where, std::string key, std::string text) {
  if (faults_ == Faults::dropped) return;
  problems_.push_back({std::move(where), std::move(key), std::move(text)});
}

void Document::finish() {
  if (problems_.empty()) return;
  std::ranges::stable_sort(problems_, {}, [](const Problem& p) {
    return std::tuple(p.where.file, p.where.line, p.where.column);
  });
  throw InputError(std::exchange(problems_, {}));
}

}  // namespace tidegate::yaml
