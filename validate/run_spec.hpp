#pragma once

#include <string>
#include <vector>

#include "models/base/yaml.hpp"
#include "sim/scenario/scenario.hpp"

/// How files of published figures name a run: a scenario beside the file, and keys set in it.
namespace tidegate {

struct RunSpec {
  std::string scenario;  ///< path
  std::vector<Override> overrides;
  Where where;  ///< of who asks for it
};

/// The keys `scenario` and, optionally, `set` of a map in the file at `path`. `overrides` come
/// first.
RunSpec read_run_spec(yaml::Map& map, const std::string& path,
                      std::vector<Override> overrides = {});

/// A map from dotted keys to values.
std::vector<Override> read_overrides(const yaml::Node& node);

/// Throws InputError with the problems of the scenario, and of the run that asked for it: `who`.
Scenario load_run(const RunSpec& spec, const std::string& who);

}  // namespace tidegate
