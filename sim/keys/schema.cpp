#include "sim/keys/schema.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/keys/markdown.hpp"

namespace tidegate {
namespace {

using json = nlohmann::ordered_json;
using Kind = Type::Kind;

constexpr const char* number_pattern = "[0-9.]+([eE][+-]?[0-9]+)?";

std::string pattern_of(Dimension dimension) {
  constexpr const char* prefix = "([kMGTPEZ]|[KMGTP]i)?";
  const auto prefixed = [&](const char* stem) {
    return fmt::format("^{} *{}{}$", number_pattern, prefix, stem);
  };
  switch (dimension) {
    case Dimension::bytes:
      return prefixed("B");
    case Dimension::bytes_per_second:
      return prefixed("B/s");
    case Dimension::flops:
      return prefixed("FLOP");
    case Dimension::flops_per_second:
      return prefixed("FLOP/s");
    case Dimension::seconds:
      return fmt::format("^{} *(s|ms|us|ns|min|h)$", number_pattern);
  }
  return "";
}

json quantity_schema(Dimension dimension) {
  return {{"type", "string"}, {"pattern", pattern_of(dimension)}};
}

void add_bounds(json& schema, const Type& type) {
  if (std::isfinite(type.least)) schema["minimum"] = type.least;
  if (std::isfinite(type.most)) schema["maximum"] = type.most;
}

json needs(const std::vector<std::string>& keys) { return {{"required", keys}}; }

json any_of(std::vector<json> all) {
  if (all.size() == 1) return all.front();
  return {{"anyOf", std::move(all)}};
}

// A literal of the page as JSON: `true`, `4`, `16 MiB`, `[head]`.
json literal_of(const std::string& text) {
  if (const json value = json::parse(text, nullptr, false); !value.is_discarded()) return value;
  if (!text.starts_with('[')) return text;
  json list = json::array();
  for (std::size_t from = 1; from < text.size();) {
    const std::size_t end = text.find_first_of(",]", from);
    list.push_back(text.substr(from, end - from));
    from = end + 2;
  }
  return list;
}

class Writer {
 public:
  explicit Writer(const KeyTable& table) : table_(table) {}

  json whole(const std::string& title) {
    json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
    schema.update(map_of({""}, nullptr));
    if (!definitions_.empty()) schema["$defs"] = definitions_;
    return schema;
  }

 private:
  // A map with the keys of these sections; of a section with names, those of one.
  json map_of(const std::vector<std::string>& sections, const PolicyName* policy) {
    json properties = json::object();
    std::vector<std::string> required;
    bool may_be_composed = false;
    for (const std::string& section : sections) {
      for (const Key* key : table_.keys_of(section)) {
        const bool is_of =
            key->of.empty() || !policy || std::ranges::find(key->of, policy->name) != key->of.end();
        if (!is_of) continue;
        properties[key->name] = described(*key);
        if (key->is_required) required.push_back(key->name);
        may_be_composed |= key->name == "component";
      }
    }
    json schema = {
        {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
    if (required.empty()) return schema;
    // What a component gives need not stand here.
    if (may_be_composed) {
      schema["anyOf"] = json::array({needs({"component"}), needs(required)});
    } else {
      schema["required"] = required;
    }
    return schema;
  }

  // A map of a section with names, by its name.
  json chosen(const std::string& section, const PolicyName& policy, bool is_first) {
    json schema = map_of({section}, &policy);
    json properties = {
        {"name", {{"const", policy.name}, {"description", without_markup(policy.meaning)}}}};
    properties.update(schema["properties"]);
    schema["properties"] = properties;
    if (!is_first) {
      json required = schema.value("required", json::array());
      required.insert(required.begin(), "name");
      schema["required"] = required;
    }
    return schema;
  }

  json map_schema(const Key& key, const std::string& suffix) {
    const std::string own = key.path() + suffix;
    const auto policies = table_.policies_of(own);
    if (!policies.empty()) {
      std::vector<json> all;
      for (const PolicyName* c : policies) all.push_back(chosen(own, *c, c == policies.front()));
      return any_of(std::move(all));
    }
    if (table_.has_section(own)) return map_of({own}, nullptr);
    return {{"type", "object"}, {"additionalProperties", map_of({own + ".*"}, nullptr)}};
  }

  json reference(const std::string& section) {
    if (!definitions_.contains(section)) {
      definitions_[section] = nullptr;  // a section may hold itself
      definitions_[section] = map_of({section}, nullptr);
    }
    return {{"$ref", "#/$defs/" + section}};
  }

  json names_of(const Key& key) {
    json words = json::array();
    for (const PolicyName* policy : table_.policies_of(key.path())) words.push_back(policy->name);
    return {{"enum", words}};
  }

  json schema_of_type(const Type& type, const Key& key, const std::string& suffix = "") {
    json schema = json::object();
    switch (type.kind) {
      case Kind::text:
        return {{"type", {"string", "number", "boolean"}}};
      case Kind::file:
      case Kind::path:
        return {{"type", "string"}};
      case Kind::flag:
        return {{"type", "boolean"}};
      case Kind::null:
        return {{"type", "null"}};
      case Kind::name:
        return names_of(key);
      case Kind::numbers:
        return {{"type", "array"}, {"items", {{"type", {"number", "null"}}}}};
      case Kind::percent:
        return {{"type", {"string", "null"}},
                {"pattern", fmt::format("^({}|inf) *%$", number_pattern)}};
      case Kind::count:
      case Kind::number:
        schema["type"] = type.kind == Kind::count ? "integer" : "number";
        add_bounds(schema, type);
        return schema;
      case Kind::quantity:
        return quantity_schema(type.dimension);
      case Kind::words:
        return {{"enum", type.words}};
      case Kind::curve:
        return {{"type", "number"}, {"exclusiveMinimum", 0}, {"maximum", 1}};
      case Kind::list:
        return {{"type", "array"}, {"items", schema_of_type(type.parts.front(), key, "[]")}};
      case Kind::map_of:
        return {{"type", "object"},
                {"additionalProperties", schema_of_type(type.parts.front(), key)}};
      case Kind::map:
        return map_schema(key, suffix);
      case Kind::section:
        return reference(type.words.front());
      case Kind::any_of: {
        std::vector<json> all;
        for (const Type& part : type.parts) all.push_back(schema_of_type(part, key, suffix));
        return any_of(std::move(all));
      }
    }
    return schema;
  }

  // {value: …} or {points: …} with where it is from.
  json cited(const Key& key) {
    json properties = {{"value", schema_of_type(key.type, key)}};
    json forms = json::array({needs({"value"})});
    if (key.type.kind == Kind::curve) {
      const json point = {
          {"type", "array"},
          {"prefixItems", {quantity_schema(key.type.dimension), schema_of_type(key.type, key)}},
          {"minItems", 2},
          {"maxItems", 2}};
      properties["points"] = {{"type", "array"}, {"minItems", 1}, {"items", point}};
      forms.push_back(needs({"points"}));
    }
    properties["source"] = {{"type", "string"},
                            {"description", "measured or cited: by whom, where"}};
    properties["assumed"] = {{"type", "string"}, {"description", "why, where nobody measured it"}};
    properties["uncertainty"] = {{"type", "string"},
                                 {"pattern", fmt::format("^{} *%$", number_pattern)},
                                 {"description", "one standard deviation"}};
    return {{"type", "object"},
            {"properties", properties},
            {"additionalProperties", false},
            {"oneOf", json::array({needs({"source"}), needs({"assumed"})})},
            {"anyOf", forms}};
  }

  json described(const Key& key) {
    json schema = key.type.is_plain ? schema_of_type(key.type, key) : cited(key);
    std::string text = without_markup(key.meaning);
    if (!key.otherwise.empty()) text += ". Left out: " + without_markup(key.otherwise);
    if (!key.mirrors.empty()) text += ". Mirrors " + without_markup(key.mirrors);
    json whole = {{"description", text}};
    whole.update(schema);
    if (!key.literal.empty() && key.type.is_plain) whole["default"] = literal_of(key.literal);
    return whole;
  }

  const KeyTable& table_;
  json definitions_ = json::object();
};

}  // namespace

std::string schema_of(const KeyTable& table, const std::string& title) {
  return Writer(table).whole(title).dump(2) + "\n";
}

}  // namespace tidegate
