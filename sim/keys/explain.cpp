#include "sim/keys/explain.hpp"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/keys/markdown.hpp"
#include "sim/keys/words.hpp"
#include "sim/report/table.hpp"

namespace tidegate {
namespace {

using Kind = Type::Kind;
constexpr std::size_t width = 80;
constexpr std::string_view machine = "machine.";

std::string joined(const std::vector<std::string>& words, const char* between = ", ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string line(const char* label, const std::string& text) {
  constexpr std::size_t indent = 12;
  return fmt::format("  {:<10}{}\n", label, wrap(without_markup(text), width - indent, indent));
}

bool is_profile(const KeyTable& table) { return &table == &profile_keys(); }

// The one policy for which an example is written: one that has the key.
const PolicyName* policy_for(const KeyTable& table, const Key& key) {
  const auto policies = table.policies_of(key.section);
  for (const PolicyName* policy : policies) {
    if (key.of.empty() || std::ranges::find(key.of, policy->name) != key.of.end()) return policy;
  }
  return nullptr;
}

bool holds_kind(const Type& type, Kind kind) {
  return type.kind == kind ||
         std::ranges::any_of(type.parts, [kind](const Type& t) { return holds_kind(t, kind); });
}

// Keys of lists and of named maps have no place that one flag could set.
bool is_settable(const Key& key, const std::string& path) {
  const bool is_map = key.type.kind == Kind::map || key.type.kind == Kind::section;
  return !is_map && path.find("[]") == std::string::npos && path.find(".*") == std::string::npos;
}

// The first value that is not the default: an example should change something.
std::string example_value(const KeyTable& table, const Key& key) {
  if (holds_kind(key.type, Kind::name)) {
    const auto policies = table.policies_of(key.path());
    for (const PolicyName* policy : policies) {
      if (policy->name != key.literal) return policy->name;
    }
  }
  const Type& type = key.type.kind == Kind::any_of ? key.type.parts.front() : key.type;
  if (type.kind == Kind::flag) return key.literal == "true" ? "false" : "true";
  if (type.kind == Kind::words) {
    for (const std::string& word : type.words) {
      if (word != key.literal) return word;
    }
  }
  return example_of(type);
}

// "policy: {optimizer: {name: mlp_offload, cache: false}}"
std::string example_line(const KeyTable& table, const Key& key) {
  if (key.type.kind == Kind::map || key.type.kind == Kind::section) return "";
  std::string value = example_value(table, key);
  if (is_profile(table) && !key.type.is_plain)
    value = fmt::format("{{value: {}, source: \"where it is from\"}}", value);
  const bool is_inside = key.section.find_first_of("[*") != std::string::npos;
  const bool is_named = !key.section.empty() && table.find(key.section).empty();
  if (is_inside || is_named) return key.name + ": " + value;
  std::string inner = key.name + ": " + value;
  if (const PolicyName* policy = policy_for(table, key))
    inner = "name: " + policy->name + ", " + inner;
  std::string section = key.section;
  bool is_whole = section.empty();
  while (!is_whole) {
    const std::size_t dot = section.rfind('.');
    inner = section.substr(dot == std::string::npos ? 0 : dot + 1) + ": {" + inner + "}";
    is_whole = dot == std::string::npos;
    if (!is_whole) section = section.substr(0, dot);
  }
  return inner;
}

std::string default_text(const Key& key) {
  if (key.is_required) return "none; the key is required";
  return key.literal.empty() ? key.otherwise : key.literal;
}

// Keys whose names stand in backticks, and those of the same section and policies that are near.
std::string related(const KeyTable& table, const Key& key) {
  std::set<std::string> seen = {key.path()};
  std::vector<std::string> names;
  const auto add = [&](const Key& other) {
    if (seen.insert(other.path()).second) names.push_back(other.path());
  };
  for (const std::string& word : words_in_backticks(key.meaning + " " + key.otherwise)) {
    for (const Key& other : table.keys) {
      if (other.name == word && other.path() != key.path()) add(other);
    }
  }
  constexpr std::size_t most = 6;
  const auto siblings = table.keys_of(key.section);
  const auto self = std::ranges::find_if(siblings, [&](const Key* k) { return k == &key; });
  const auto at = self - siblings.begin();
  for (std::ptrdiff_t step = 1; step < std::ssize(siblings); ++step) {
    for (const std::ptrdiff_t i : {at - step, at + step}) {
      if (i < 0 || i >= std::ssize(siblings) || names.size() >= most) continue;
      if (siblings[static_cast<std::size_t>(i)]->of == key.of)
        add(*siblings[static_cast<std::size_t>(i)]);
    }
  }
  return joined(names);
}

std::string children_text(const KeyTable& table, const Key& key) {
  Table list{.header = {"key", "of", "default", "meaning"}, .rows = {}, .align = {}};
  list.align.assign(4, Align::left);
  std::string text;
  for (const std::string& section : table.sections_below(key)) {
    for (const PolicyName* c : table.policies_of(section))
      text += fmt::format("  {:<14}{}\n", c->name, wrap(without_markup(c->meaning), 64, 16));
    for (const Key* child : table.keys_of(section)) {
      std::string meaning = without_markup(child->meaning);
      constexpr std::size_t longest = 60;
      if (meaning.size() > longest) meaning = meaning.substr(0, meaning.rfind(' ', longest)) + " …";
      std::string standing = default_text(*child);
      if (child->is_required) standing = "required";
      constexpr std::size_t widest = 24;
      if (standing.size() > widest) standing = "see there";
      list.rows.push_back({child->name, joined(child->of), without_markup(standing), meaning});
    }
  }
  if (!text.empty()) text = "Names\n" + text;
  const bool has_of = std::ranges::any_of(list.rows, [](const auto& r) { return !r[1].empty(); });
  if (!has_of) {
    for (auto& row : list.rows) row.erase(row.begin() + 1);
    list.header.erase(list.header.begin() + 1);
  }
  if (!list.rows.empty()) text += (text.empty() ? "" : "\n") + to_text(list);
  return text;
}

std::string key_text(const KeyTable& table, const Key& key, const std::string& asked) {
  const std::string path = (is_profile(table) ? std::string(machine) : "") + key.path();
  std::string text = path;
  if (is_profile(table)) text += "   (of the profile)";
  text += "\n" + line("means", key.meaning);
  if (!key.of.empty()) text += line("of", joined(key.of));
  text += line("holds", to_text(key.type));
  text += line("left out", default_text(key));
  if (!key.mirrors.empty()) text += line("mirrors", key.mirrors);
  const std::string example = example_line(table, key);
  if (!example.empty()) text += fmt::format("  {:<10}{}\n", "example", example);
  const bool is_own = asked.find('.') != std::string::npos && asked.find("..") == asked.npos;
  const std::string settable = is_own && path.find(".*") != path.npos ? asked : path;
  if (!example.empty() && (is_settable(key, settable) || settable != path)) {
    const std::string value = example_value(table, key);
    const bool is_word = value.find_first_of(" {[") == std::string::npos;
    const std::string flag = settable + "=" + value;
    text += fmt::format("  {:<10}--set {}\n", "try", is_word ? flag : "'" + flag + "'");
  }
  if (is_profile(table) && !key.type.is_plain)
    text += line("from",
                 "each profile says where its value is from, or that it is assumed; a report "
                 "lists the assumed ones");
  const std::string more = related(table, key);
  if (!more.empty()) text += line("see also", more);
  text += fmt::format("  {:<10}{}:{}\n", "page", table.page, key.line);
  const std::string children = children_text(table, key);
  return children.empty() ? text : text + "\n" + children;
}

std::string policy_text(const KeyTable& table, const PolicyName& policy) {
  std::string text = fmt::format("{}   (a name of {})\n", policy.name, policy.section);
  text += line("means", policy.meaning);
  if (!policy.mirrors.empty()) text += line("mirrors", policy.mirrors);
  text += fmt::format("  {:<10}--set {}={}\n", "try", policy.section, policy.name);
  text += fmt::format("  {:<10}{}:{}\n", "page", table.page, policy.line);
  std::string keys;
  for (const Key* key : table.keys_of(policy.section)) {
    if (!key->of.empty() && std::ranges::find(key->of, policy.name) == key->of.end()) continue;
    keys += fmt::format("  {:<20}{}\n", key->name,
                        wrap(without_markup(default_text(*key) + ": " + key->meaning), 58, 22));
  }
  return keys.empty() ? text : text + "\nIts keys, and what holds when they are left out\n" + keys;
}

std::string word_text(const Word& word) {
  const bool is_field = word.page == "docs/report_json.md";
  std::string text =
      joined(word.words) + (is_field ? "   (a field of --json)" : "   (a word of reports)") + "\n";
  text += line("means", word.meaning);
  if (!word.unit.empty()) text += line("unit", word.unit);
  return text + fmt::format("  {:<10}{}:{}\n", "page", word.page, word.line);
}

std::string without_machine(const std::string& asked) {
  return asked.starts_with(machine) ? asked.substr(machine.size()) : asked;
}

void add_by_path(const std::string& asked, std::vector<std::string>& texts) {
  if (!asked.starts_with(machine)) {
    for (const Key* key : scenario_keys().find(asked))
      texts.push_back(key_text(scenario_keys(), *key, asked));
  }
  if (!texts.empty()) return;
  const std::string path = without_machine(asked);
  for (const Key* key : profile_keys().find(path))
    texts.push_back(key_text(profile_keys(), *key, std::string(machine) + path));
}

void add_by_name(const std::string& asked, std::vector<std::string>& texts) {
  std::vector<std::string> keys, paths;
  for (const KeyTable* table : {&scenario_keys(), &profile_keys()}) {
    for (const PolicyName& policy : table->policies) {
      if (policy.name == asked) texts.push_back(policy_text(*table, policy));
    }
    for (const Key& key : table->keys) {
      if (key.name != asked || key.section.starts_with("calibration")) continue;
      keys.push_back(key_text(*table, key, ""));
      paths.push_back((is_profile(*table) ? std::string(machine) : "") + key.path());
    }
  }
  constexpr std::size_t most = 3;
  if (keys.size() > most)
    keys = {fmt::format("{} is a key of several sections; ask for one of\n  {}\n", asked,
                        joined(paths, "\n  "))};
  texts.insert(texts.end(), keys.begin(), keys.end());
}

}  // namespace

std::vector<std::string> settable_keys() {
  std::set<std::string> keys = {"hardware"};
  for (const Key& key : scenario_keys().keys) {
    const bool is_reachable = scenario_keys().find(key.path()).size() > 0;
    if (is_reachable && is_settable(key, key.path())) keys.insert(key.path());
  }
  for (const Key& key : profile_keys().keys) {
    if (is_settable(key, key.path()) && !key.path().starts_with("calibration"))
      keys.insert(std::string(machine) + key.path());
  }
  return {keys.begin(), keys.end()};
}

std::vector<std::string> values_of(const std::string& key) {
  const KeyTable& table = key.starts_with(machine) ? profile_keys() : scenario_keys();
  std::vector<std::string> values;
  for (const Key* found : table.find(without_machine(key))) {
    const bool has_parts = found->type.kind == Kind::any_of;
    const std::vector<Type> parts = has_parts ? found->type.parts : std::vector{found->type};
    for (const Type& part : parts) {
      if (part.kind == Kind::flag) values.insert(values.end(), {"true", "false"});
      if (part.kind == Kind::words)
        values.insert(values.end(), part.words.begin(), part.words.end());
      if (part.kind != Kind::name) continue;
      for (const PolicyName* policy : table.policies_of(found->path()))
        values.push_back(policy->name);
    }
  }
  return values;
}

std::vector<std::string> explained_words() {
  std::set<std::string> all;
  for (const Key& key : scenario_keys().keys) all.insert(key.path());
  for (const Key& key : profile_keys().keys) all.insert(std::string(machine) + key.path());
  for (const PolicyName& policy : scenario_keys().policies) all.insert(policy.name);
  for (const Word& word : report_words()) all.insert(word.words.begin(), word.words.end());
  return {all.begin(), all.end()};
}

std::string explain(const std::string& asked) {
  std::vector<std::string> texts;
  add_by_path(asked, texts);
  if (texts.empty()) add_by_name(asked, texts);
  for (const Word& word : report_words()) {
    if (explains(word, asked)) texts.push_back(word_text(word));
  }
  if (!texts.empty()) return joined(texts, "\n");
  std::vector<std::string> known = explained_words();
  for (const KeyTable* table : {&scenario_keys(), &profile_keys()}) {
    for (const Key& key : table->keys) known.push_back(key.name);
  }
  const std::string near = nearest(asked, known);
  throw InputError(fmt::format("explain: '{}' is no key, policy or word of a report; {}", asked,
                               near.empty() ? "tidegate explain without a word lists where to begin"
                                            : fmt::format("did you mean '{}'?", near)));
}

}  // namespace tidegate
