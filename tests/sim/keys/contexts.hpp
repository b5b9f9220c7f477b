#pragma once

#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/yaml.hpp"
#include "sim/keys/keys.hpp"

/// Small files in which every key of the tables has a place, and what their readers say of one.
namespace tidegate::test {

/// A file and where a section stands in it.
struct Context {
  yaml::Value root;
  bool is_profile = false;
  std::string section;   ///< "workload.layers[]"
  std::string instance;  ///< "workload.layers[0]"
  const PolicyName* policy = nullptr;

  std::string path(const std::string& name) const {
    return instance.empty() ? name : instance + "." + name;
  }
  /// The file with this value instead; `text` is YAML. Of a profile, an override needs no source.
  yaml::Value with(const std::string& name, const std::string& text,
                   const std::string& from = "override") const;
  /// The map in which the keys of the section stand; nullptr when the file does not have it.
  static yaml::Value* map_at(yaml::Value& root, std::string instance);
};

/// Of a table: every section, under every one of its policies, at least once.
std::vector<Context> scenario_contexts();
std::vector<Context> profile_contexts();

/// What the reader finds wrong with a file.
std::vector<Problem> problems_of(const Context& context, yaml::Value root);

/// The keys that the reader knows at a context's place.
std::set<std::string> known_at(const Context& context);

/// The file as a JSON parser would give it, which is what a schema is held against.
nlohmann::json json_of(const yaml::Value& value);

}  // namespace tidegate::test
