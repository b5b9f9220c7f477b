#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "models/base/error.hpp"
#include "models/profile.hpp"
#include "sim/keys/schema.hpp"
#include "sim/plan/plan.hpp"
#include "sim/policy/policy.hpp"
#include "sim/run/predict.hpp"
#include "sim/scenario/scenario.hpp"
#include "tests/catch.hpp"
#include "tests/sim/keys/contexts.hpp"
#include "tests/sim/keys/json_schema.hpp"

/// The tables of docs/scenario.md and docs/profiles.md against what the readers accept, and the
/// JSON Schemas against both. A key that is added to a reader fails here until it has its row.

using namespace tidegate;
using test::Context;
namespace fs = std::filesystem;

namespace {

using Kind = Type::Kind;
const std::string source = TIDEGATE_SOURCE_DIR;

const KeyTable& table_of(const Context& context) {
  return context.is_profile ? profile_keys() : scenario_keys();
}

std::vector<Context> all_contexts() {
  std::vector<Context> all = test::scenario_contexts();
  for (Context& context : test::profile_contexts()) all.push_back(std::move(context));
  return all;
}

bool is_of(const Key& key, const PolicyName* policy) {
  return policy == nullptr || key.of.empty() ||
         std::ranges::find(key.of, policy->name) != key.of.end();
}

// Every key at every place where a reader knows it.
template <class Check>
void for_each_key(Check check) {
  std::size_t count = 0;
  for (const Context& context : all_contexts()) {
    const std::set<std::string> known = test::known_at(context);
    for (const Key* key : table_of(context).keys_of(context.section)) {
      if (!known.contains(key->name) || !is_of(*key, context.policy)) continue;
      INFO(context.path(key->name) << (context.policy ? " of " + context.policy->name : "") << ", "
                                   << table_of(context).page << ":" << key->line);
      check(context, *key);
      ++count;
    }
  }
  CHECK(count > 250);
}

bool is_about(const Problem& p, const std::string& path) {
  return p.key == path || p.key.starts_with(path + ".") || p.key.starts_with(path + "[");
}

std::string texts_about(const std::vector<Problem>& problems, const std::string& path) {
  std::string texts;
  for (const Problem& p : problems) {
    if (is_about(p, path)) texts += p.text + "\n";
  }
  return texts;
}

// As the reader of a profile wants it.
std::string as_given(const Key& key, const std::string& text) {
  return key.type.is_plain ? text : "{value: " + text + ", source: a test}";
}

bool has_kind(const Type& type, std::initializer_list<Kind> kinds) {
  return std::ranges::find(kinds, type.kind) != kinds.end() ||
         (type.kind == Kind::any_of &&
          std::ranges::any_of(type.parts, [&](const Type& t) { return has_kind(t, kinds); }));
}

// A value of another type than the key's: a list for a word, a word for all else.
std::string wrong_value(const Key& key) {
  const bool is_name_or_list =
      has_kind(key.type, {Kind::path}) || !has_kind(key.type, {Kind::list});
  if (key.type.kind == Kind::any_of && !is_name_or_list) return "zzz";
  return has_kind(key.type, {Kind::text, Kind::file, Kind::path}) ? "[1]" : "zzz";
}

// What the reader says of a value of the wrong type, by what was documented.
std::string complaint(const Type& type) {
  switch (type.kind) {
    case Kind::count:
      return "a whole number is expected";
    case Kind::number:
    case Kind::curve:
      return "a number is expected";
    case Kind::flag:
      return "write true or false";
    case Kind::quantity:
      return describe(type.dimension).noun;
    case Kind::words:
      return type.words.size() == 1 ? "" : "; one of: ";
    case Kind::name:
      return "; one of: ";
    case Kind::list:
    case Kind::numbers:
      return "a list is expected";
    case Kind::map:
    case Kind::map_of:
    case Kind::section:
      return "a map of keys is expected";
    default:
      return "";
  }
}

nlohmann::json schema_for(const Context& context) {
  return nlohmann::json::parse(schema_of(table_of(context), "a title"));
}

std::vector<std::string> yaml_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(source + folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  CHECK(files.size() > 5);
  return files;
}

}  // namespace

TEST_CASE("the contexts of these tests are files without fault", "[keys]") {
  for (const Context& context : all_contexts()) {
    INFO(context.section << (context.policy ? " of " + context.policy->name : ""));
    for (const Problem& p : test::problems_of(context, context.root))
      FAIL_CHECK(p.key + ": " + p.text);
  }
}

TEST_CASE("rows and readers know the same keys", "[keys]") {
  std::map<std::string, std::set<std::string>> known;
  for (const Context& context : all_contexts()) {
    const std::set<std::string> here = test::known_at(context);
    INFO(table_of(context).page << ": " << context.section);
    CHECK(!here.empty());
    const std::string name = table_of(context).page + ": " + context.section;
    known[name].insert(here.begin(), here.end());
    if (context.policy == nullptr) continue;
    // Of a policy exactly, not only together with the others.
    std::set<std::string> rows = {"name"};
    for (const Key* key : table_of(context).keys_of(context.section)) {
      if (is_of(*key, context.policy)) rows.insert(key->name);
    }
    INFO(context.policy->name);
    CHECK(here == rows);
  }
  for (const KeyTable* table : {&scenario_keys(), &profile_keys()}) {
    for (auto& [name, keys] : known) {
      const std::string prefix = table->page + ": ";
      if (!name.starts_with(prefix)) continue;
      std::set<std::string> rows;
      const std::string section = name.substr(prefix.size());
      for (const Key* key : table->keys_of(section)) rows.insert(key->name);
      rows.erase("component");  // gone before a part is read
      if (!table->policies_of(section).empty()) rows.insert("name");
      INFO(name);
      CHECK(keys == rows);
    }
  }
}

TEST_CASE("rows and readers know the same policies", "[keys]") {
  std::set<std::string> rows, policies;
  for (const PolicyName& c : scenario_keys().policies) rows.insert(c.section + ": " + c.name);
  for (const PolicyEntry& e : policy_table())
    policies.insert("policy." + std::string(e.section) + ": " + std::string(e.name));
  CHECK(rows == policies);
}

TEST_CASE("a value of another type is refused in the words of its row, and by the schema",
          "[keys]") {
  const nlohmann::json scenario = nlohmann::json::parse(schema_of(scenario_keys(), ""));
  const nlohmann::json profile = nlohmann::json::parse(schema_of(profile_keys(), ""));
  for_each_key([&](const Context& context, const Key& key) {
    const yaml::Value changed = context.with(key.name, as_given(key, wrong_value(key)));
    const auto problems = test::problems_of(context, changed);
    const std::string said = texts_about(problems, context.path(key.name));
    CHECK(!said.empty());
    CHECK_THAT(said, Containing(complaint(key.type)));
    const nlohmann::json& schema = context.is_profile ? profile : scenario;
    CHECK(!test::violation(schema, test::json_of(changed), schema).empty());
  });
}

TEST_CASE("the words of a row are the reader's", "[keys]") {
  for_each_key([](const Context& context, const Key& key) {
    if (key.type.kind != Kind::words) return;
    const auto problems =
        test::problems_of(context, context.with(key.name, as_given(key, "zzzzzzzzzzzz")));
    const std::string said = texts_about(problems, context.path(key.name));
    const std::size_t at = said.find("one of: ");
    if (key.type.words.size() == 1) return;
    REQUIRE(at != std::string::npos);
    std::set<std::string> words(key.type.words.begin(), key.type.words.end()), listed;
    std::string list = said.substr(at + 8, said.find('\n', at) - at - 8);
    for (std::size_t from = 0; from < list.size();) {
      const std::size_t end = std::min(list.find(", ", from), list.size());
      listed.insert(list.substr(from, end - from));
      from = end + 2;
    }
    CHECK(words == listed);
  });
}

TEST_CASE("bounds of a row are the reader's", "[keys]") {
  for_each_key([](const Context& context, const Key& key) {
    const Type& type = key.type;
    const bool is_number = has_kind(type, {Kind::count, Kind::number}) && type.parts.empty();
    const auto is_refused = [&](const std::string& text) {
      const auto problems = test::problems_of(context, context.with(key.name, as_given(key, text)));
      return !texts_about(problems, context.path(key.name)).empty();
    };
    if (is_number && std::isfinite(type.least))
      CHECK(is_refused(fmt::format("{:.17g}", type.least - 1)));
    if (is_number && std::isfinite(type.most))
      CHECK(is_refused(fmt::format("{:.17g}", type.most + std::max(1.0, type.most / 100))));
    if (type.kind != Kind::quantity) return;
    const std::string unit = example_of(type).substr(example_of(type).find(' ') + 1);
    CHECK(is_refused("-1 " + unit));
    if (type.is_least_open) CHECK(is_refused("0 " + unit));
    if (!type.is_least_open) CHECK(!is_refused("0 " + unit));
  });
}

TEST_CASE("a required key is missed", "[keys]") {
  for_each_key([](const Context& context, const Key& key) {
    if (!key.is_required) return;
    yaml::Value root = context.root;
    yaml::Value* at = Context::map_at(root, context.instance);
    REQUIRE(at != nullptr);
    std::erase_if(at->entries, [&](const yaml::Entry& e) { return e.key == key.name; });
    const auto problems = test::problems_of(context, root);
    CHECK_THAT(texts_about(problems, context.path(key.name)), Containing("is missing"));
    const nlohmann::json schema = schema_for(context);
    CHECK(!test::violation(schema, test::json_of(root), schema).empty());
  });
}

TEST_CASE("a default of a scenario's row is what holds without the key", "[keys]") {
  const auto outcome = [](const Context& context, const yaml::Value& root) {
    Scenario scenario = read_scenario(root, "context", source + "/scenarios/context.yaml");
    Prediction p = predict(scenario);
    return dump(p.plan) + to_json(p.report) + (context.policy ? context.policy->name : "");
  };
  for_each_key([&](const Context& context, const Key& key) {
    if (context.is_profile || key.literal.empty()) return;
    yaml::Value root = context.root;
    const yaml::Value* map = Context::map_at(root, context.instance);
    if (map != nullptr && map->find(key.name) != nullptr) return;  // given, for others' sake
    CHECK(outcome(context, context.root) == outcome(context, context.with(key.name, key.literal)));
  });
}

TEST_CASE("a default of a profile's row is accepted", "[keys]") {
  for_each_key([](const Context& context, const Key& key) {
    if (!context.is_profile || key.literal.empty()) return;
    const yaml::Value changed = context.with(key.name, as_given(key, key.literal));
    CHECK(texts_about(test::problems_of(context, changed), context.path(key.name)).empty());
  });
}

TEST_CASE("what a profile cites is cited in its row", "[keys]") {
  for_each_key([](const Context& context, const Key& key) {
    if (!context.is_profile || has_kind(key.type, {Kind::map, Kind::map_of})) return;
    const std::string right = key.literal.empty() ? example_of(key.type) : key.literal;
    const yaml::Value bare = context.with(key.name, right, "a file");
    const std::string said = texts_about(test::problems_of(context, bare), context.path(key.name));
    CHECK((said.find("has no origin") == std::string::npos) == key.type.is_plain);
  });
}

TEST_CASE("what ships is valid by the schemas", "[keys]") {
  const nlohmann::json scenario = nlohmann::json::parse(schema_of(scenario_keys(), ""));
  const nlohmann::json profile = nlohmann::json::parse(schema_of(profile_keys(), ""));
  for (const std::string& file : yaml_files("/scenarios"))
    CHECK(test::violation(scenario, test::json_of(yaml::load_file(file)), scenario, file).empty());
  for (const std::string& file : yaml_files("/hw_profiles")) {
    INFO(file);
    CHECK(test::violation(profile, test::json_of(yaml::load_file(file)), profile).empty());
    CHECK(test::violation(profile, test::json_of(profile_values(file, {})), profile).empty());
  }
  for (const Context& context : all_contexts()) {
    INFO(context.section << (context.policy ? " of " + context.policy->name : ""));
    const nlohmann::json& schema = context.is_profile ? profile : scenario;
    CHECK(test::violation(schema, test::json_of(context.root), schema) == "");
  }
}

TEST_CASE("a row that cannot be understood is an error with its line", "[keys]") {
  const auto wrong = [](const std::string& rows) {
    try {
      read_keys(
          "# Page\n\n## `part`\n\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n" +
              rows + "\n",
          "page.md");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(wrong("| `a` | count from 1 | `4` | a number of things |").empty());
  CHECK_THAT(wrong("| `a` | count of 1 | `4` | a number of things |"),
             Containing("page.md:7:1") && Containing("'count of 1' is no type"));
  CHECK_THAT(wrong("| `a` | flag | `true` |"), Containing("has 3 cells; its table has 4 columns"));
  CHECK_THAT(wrong("| a | flag | `true` | m |"), Containing("a key is written in backticks"));
  CHECK_THAT(wrong("| `a` | map | none | m |"), Containing("no heading has its keys"));
  CHECK_THAT(wrong("| `a` | flag | | m |"), Containing("the default is missing"));
  CHECK_THAT(wrong("| `a` | flag | none | m |\n| `a` | flag | none | m |"),
             Containing("page.md:8:1") && Containing("has a second row"));
}
