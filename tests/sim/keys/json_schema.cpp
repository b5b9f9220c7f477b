#include "tests/sim/keys/json_schema.hpp"

#include <algorithm>
#include <cmath>
#include <regex>
#include <stdexcept>

namespace tidegate::test {
namespace {

using nlohmann::json;

bool is_of(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  if (type == "integer")
    return value.is_number() && std::trunc(value.get<double>()) == value.get<double>();
  throw std::logic_error("unknown type " + type);
}

bool is_of_one(const json& value, const json& types) {
  if (types.is_string()) return is_of(value, types);
  return std::ranges::any_of(types, [&](const json& t) { return is_of(value, t); });
}

std::string object_violation(const json& schema, const json& value, const json& root,
                             const std::string& at) {
  const json none = json::object();
  const json& properties = schema.contains("properties") ? schema["properties"] : none;
  for (const auto& [key, inner] : value.items()) {
    const std::string place = at + "." + key;
    std::string wrong;
    if (properties.contains(key)) {
      wrong = violation(properties[key], inner, root, place);
    } else if (schema.contains("additionalProperties")) {
      const json& rest = schema["additionalProperties"];
      wrong = rest.is_boolean() ? (rest ? "" : place + ": unknown key")
                                : violation(rest, inner, root, place);
    }
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string array_violation(const json& schema, const json& value, const json& root,
                            const std::string& at) {
  if (schema.contains("minItems") && value.size() < schema["minItems"]) return at + ": too short";
  if (schema.contains("maxItems") && value.size() > schema["maxItems"]) return at + ": too long";
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string place = at + "[" + std::to_string(i) + "]";
    const bool has_own = schema.contains("prefixItems") && i < schema["prefixItems"].size();
    if (!has_own && !schema.contains("items")) continue;
    const json& rule = has_own ? schema["prefixItems"][i] : schema["items"];
    if (const std::string wrong = violation(rule, value[i], root, place); !wrong.empty())
      return wrong;
  }
  return "";
}

std::string scalar_violation(const json& schema, const json& value, const std::string& at) {
  if (schema.contains("type") && !is_of_one(value, schema["type"])) return at + ": wrong type";
  if (schema.contains("const") && value != schema["const"]) return at + ": another word";
  if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end())
    return at + ": none of the words";
  if (schema.contains("pattern") && value.is_string() &&
      !std::regex_search(value.get<std::string>(),
                         std::regex(schema["pattern"].get<std::string>())))
    return at + ": does not match";
  if (!value.is_number()) return "";
  const double number = value.get<double>();
  if (schema.contains("minimum") && number < schema["minimum"]) return at + ": too small";
  if (schema.contains("exclusiveMinimum") && number <= schema["exclusiveMinimum"])
    return at + ": too small";
  if (schema.contains("maximum") && number > schema["maximum"]) return at + ": too large";
  return "";
}

void check_keywords(const json& schema) {
  static const std::vector<std::string> known = {
      "$schema",  "title",    "description", "default", "$defs",   "$ref",
      "type",     "const",    "enum",        "pattern", "minimum", "exclusiveMinimum",
      "maximum",  "required", "properties",  "items",   "anyOf",   "additionalProperties",
      "minItems", "maxItems", "prefixItems", "oneOf"};
  for (const auto& [key, unused] : schema.items()) {
    if (std::ranges::find(known, key) == known.end())
      throw std::logic_error("the validator does not know " + key);
  }
}

}  // namespace

std::string violation(const json& schema, const json& value, const json& root,
                      const std::string& at) {
  check_keywords(schema);
  if (schema.contains("$ref")) {
    const std::string name = schema["$ref"].get<std::string>().substr(std::string("#/").size());
    return violation(root.at(json::json_pointer("/" + name)), value, root, at);
  }
  if (const std::string wrong = scalar_violation(schema, value, at); !wrong.empty()) return wrong;
  if (value.is_object() && schema.contains("required")) {
    for (const json& key : schema["required"]) {
      if (!value.contains(key.get<std::string>())) return at + ": lacks " + key.get<std::string>();
    }
  }
  for (const char* word : {"anyOf", "oneOf"}) {
    if (!schema.contains(word)) continue;
    std::string wrongs;
    std::ptrdiff_t right = 0;
    for (const json& one : schema[word]) {
      const std::string wrong = violation(one, value, root, at);
      right += wrong.empty() ? 1 : 0;
      wrongs += (wrongs.empty() ? "" : "; ") + wrong;
    }
    if (right == 0) return at + ": none holds (" + wrongs + ")";
    if (right > 1 && std::string(word) == "oneOf") return at + ": several hold";
  }
  if (value.is_object()) return object_violation(schema, value, root, at);
  if (value.is_array()) return array_violation(schema, value, root, at);
  return "";
}

}  // namespace tidegate::test
