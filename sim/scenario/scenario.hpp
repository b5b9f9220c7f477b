#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/base/yaml.hpp"
#include "models/machine.hpp"
#include "sim/graph/workload.hpp"
#include "sim/memory/caching_allocator.hpp"
#include "sim/policy/policy.hpp"

namespace tidegate {

/// More would only take time: the last two iterations of a run are the steady ones.
inline constexpr std::int32_t most_iterations = 1000;

/// A question: this workload, on this machine, under this policy.
///
/// The file has the sections name, workload (sim/graph/workload.hpp), hardware (a profile's name or
/// path), policy (sim/policy/policy.hpp), and optionally ranks (GPUs used per node; all by
/// default), iterations and memory (options of the framework's GPU allocator).
struct Scenario {
  std::string name;
  Workload workload;
  std::string profile;   ///< as the file names it
  yaml::Value hardware;  ///< the profile's values, components and overrides in place
  Machine machine;
  Policy policy;
  Loading loading;
  std::uint16_t ranks = 1;
  std::int32_t iterations = 6;
  AllocatorOptions allocator;
  /// The plan has every rank of a node, for whoever runs it, also where one could stand for its
  /// tensor-parallel group (Layout).
  bool plans_every_rank = false;
};

/// A dotted key and the YAML text that replaces its value: policy.optimizer.buffer_count=32. Keys
/// that begin with "machine." change the profile instead: machine.gpus.count=2.
using Override = std::pair<std::string, std::string>;

/// "key=value" as given to --set. Throws InputError when there is no '='.
Override read_override(const std::string& text);

/// What scenarios are read from again and again with other overrides: values, the title when they
/// have none, and the file to which their paths are relative.
struct ScenarioSource {
  yaml::Value root;
  std::string name, path;
};
/// Reads a file. Throws InputError.
ScenarioSource scenario_source(const std::string& path);

/// Reads a scenario that stands in another file: `root` is its map, `path` that file, to which the
/// scenario's own paths are relative. Throws InputError with all problems, or those of its profile.
Scenario read_scenario(yaml::Value root, const std::string& name, const std::string& path,
                       const std::vector<Override>& overrides = {});
/// The file's values with the overrides in place, those of the profile left out.
yaml::Value scenario_values(const std::string& path, const std::vector<Override>& overrides);
yaml::Value scenario_values(const ScenarioSource& source, const std::vector<Override>& overrides);

/// A scenario file and its machine, read once for many variations.
struct Draft {
  yaml::Value root;
  std::string name, path;
  std::string profile;
  yaml::Value hardware;
  Machine machine;
};
/// Throws InputError when the file or its profile cannot be read; the scenario is not looked at.
Draft draft_scenario(const std::string& path, const std::vector<Override>& overrides = {});
/// The draft with these values replaced: what load_scenario gives for the draft's overrides and
/// these. The profile is read again only when they change it. Throws InputError.
Scenario read_scenario(const Draft& draft, const std::vector<Override>& overrides);

/// Reads a scenario file. Throws InputError with all problems of the file, or of its profile.
Scenario load_scenario(const std::string& path, const std::vector<Override>& overrides = {});
Scenario load_scenario(const ScenarioSource& source, const std::vector<Override>& overrides = {});

}  // namespace tidegate
