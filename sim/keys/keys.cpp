#include "sim/keys/keys.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "sim/keys/markdown.hpp"

namespace tidegate {
namespace {

using Kind = Type::Kind;
using Row = MarkdownTable::Row;

std::vector<std::string> listed(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t comma = text.find(", ");
    words.emplace_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? "" : text.substr(comma + 2);
  }
  return words;
}

// The sections that a heading names; one without backticks names none, and "Top level" the file.
std::vector<std::string> sections_of(const std::string& heading) {
  if (heading == "Top level") return {""};
  return words_in_backticks(heading);
}

class Reader {
 public:
  Reader(std::string_view page, const std::string& name) : table_{.page = name} {
    for (const MarkdownTable& table : markdown_tables(page, name)) {
      for (const std::string& section : sections_of(table.heading)) add(table, section);
    }
    check();
  }
  KeyTable take() {
    if (!problems_.empty()) throw InputError(std::move(problems_));
    return std::move(table_);
  }

 private:
  void problem(int line, const std::string& key, std::string text) {
    problems_.push_back({{table_.page, line, 1}, key, std::move(text)});
  }

  void add(const MarkdownTable& table, const std::string& section) {
    const std::string& first = table.header.front();
    if (first != "key" && first != "name") return;
    static const std::set<std::string> columns = {"key",   "name",    "of",      "type",
                                                  "value", "default", "meaning", "mirrors"};
    for (const std::string& column : table.header) {
      if (!columns.contains(column))
        problem(table.heading_line, table.heading, "has a table with a column '" + column + "'");
    }
    for (const Row& row : table.rows) {
      std::map<std::string, std::string> cells;
      for (std::size_t i = 0; i < row.cells.size(); ++i) cells[table.header[i]] = row.cells[i];
      if (first == "key") add_keys(section, cells, row.line);
      if (first == "name") add_policy(section, cells, row.line);
    }
  }

  void add_policy(const std::string& section, std::map<std::string, std::string>& cells, int line) {
    const std::vector<std::string> names = words_in_backticks(cells["name"]);
    if (names.size() != 1) problem(line, cells["name"], "is no name in backticks");
    for (const std::string& name : names)
      table_.policies.push_back({section, name, cells["meaning"], cells["mirrors"], line});
  }

  void add_keys(const std::string& section, std::map<std::string, std::string>& cells, int line) {
    Key key{.section = section,
            .of = listed(cells["of"]),
            .meaning = cells["meaning"],
            .mirrors = cells["mirrors"],
            .line = line};
    const bool is_cited = cells.contains("value");
    std::string wrong;
    key.type = parse_type(cells[is_cited ? "value" : "type"], wrong);
    if (!is_cited) key.type.is_plain = true;
    const std::string& standing = cells["default"];
    const std::vector<std::string> literal = words_in_backticks(standing);
    key.is_required = standing == "required";
    if (literal.size() == 1 && standing == "`" + literal.front() + "`") {
      key.literal = literal.front();
    } else if (!key.is_required) {
      key.otherwise = standing;
    }
    const std::vector<std::string> names = words_in_backticks(cells["key"]);
    if (names.empty()) wrong = "a key is written in backticks";
    if (standing.empty() && wrong.empty())
      wrong = "the default is missing; required, or what holds";
    if (key.meaning.empty() && wrong.empty()) wrong = "the meaning is missing";
    if (!wrong.empty()) problem(line, cells["key"], wrong);
    for (const std::string& name : names) {
      key.name = name;
      table_.keys.push_back(key);
    }
  }

  void check() {
    std::set<std::string> seen;
    for (const Key& key : table_.keys) {
      const bool has_map = has_kind(key.type, Kind::map) || has_kind(key.type, Kind::section);
      if (has_map && table_.sections_below(key).empty())
        problem(key.line, key.path(), "is a map, and no heading has its keys");
      std::vector<std::string> of = key.of;
      if (of.empty()) of.emplace_back();
      for (const std::string& policy : of) {
        if (!seen.insert(key.path() + " of " + policy).second)
          problem(key.line, key.path(), "has a second row");
        const auto all = table_.policies_of(key.section);
        const auto is_it = [&](const PolicyName* c) { return c->name == policy; };
        if (!policy.empty() && std::ranges::none_of(all, is_it))
          problem(key.line, key.path(), "is of '" + policy + "', which is no name of this section");
      }
    }
  }

 public:
  static bool has_kind(const Type& type, Kind kind) {
    return type.kind == kind ||
           std::ranges::any_of(type.parts, [kind](const Type& t) { return has_kind(t, kind); });
  }

 private:
  KeyTable table_;
  std::vector<Problem> problems_;
};

void add_named(const Type& type, std::vector<std::string>& sections) {
  if (type.kind == Kind::section) sections.push_back(type.words.front());
  for (const Type& part : type.parts) add_named(part, sections);
}

// "a.b[0].c" as a, b, c.
std::vector<std::string> steps_of(std::string_view path) {
  std::vector<std::string> steps;
  while (true) {
    const std::size_t dot = path.find('.');
    const std::string_view step = path.substr(0, dot);
    steps.emplace_back(step.substr(0, step.find('[')));
    if (dot == std::string_view::npos) return steps;
    path.remove_prefix(dot + 1);
  }
}

}  // namespace

std::vector<const Key*> KeyTable::keys_of(std::string_view section) const {
  std::vector<const Key*> found;
  for (const Key& key : keys) {
    if (key.section == section) found.push_back(&key);
  }
  return found;
}

std::vector<const PolicyName*> KeyTable::policies_of(std::string_view section) const {
  std::vector<const PolicyName*> found;
  for (const PolicyName& policy : policies) {
    if (policy.section == section) found.push_back(&policy);
  }
  return found;
}

bool KeyTable::has_section(std::string_view section) const {
  return std::ranges::find(keys, section, &Key::section) != keys.end();
}

std::vector<std::string> KeyTable::sections_below(const Key& key) const {
  std::vector<std::string> sections;
  for (const char* below : {"", "[]", ".*"}) {
    if (has_section(key.path() + below)) sections.push_back(key.path() + below);
  }
  add_named(key.type, sections);
  return sections;
}

std::vector<const Key*> KeyTable::find(std::string_view path) const {
  std::vector<const Key*> found;
  for (const Key& key : keys) {
    if (key.path() == path) found.push_back(&key);
  }
  if (!found.empty()) return found;
  std::vector<std::string> sections = {""};
  for (const std::string& step : steps_of(path)) {
    const bool is_name =
        std::ranges::any_of(sections, [](const std::string& s) { return s.ends_with(".*"); });
    if (is_name && !found.empty()) {
      found.clear();  // the name that a profile chose: what follows is a key
      continue;
    }
    found.clear();
    for (const std::string& section : sections) {
      for (const Key* key : keys_of(section)) {
        if (key->name == step) found.push_back(key);
      }
    }
    if (found.empty()) return {};
    sections = sections_below(*found.front());
  }
  return found;
}

KeyTable read_keys(std::string_view page, const std::string& name) {
  return Reader(page, name).take();
}

}  // namespace tidegate
