#pragma once

#include <string>
#include <vector>

#include "models/base/yaml.hpp"
#include "sim/scenario/scenario.hpp"

/// Cases of a suite: one scenario, and what each case changes in it.
///
///   scenario: {workload: …, hardware: …, policy: {}, …}
///   cases:
///     - name: keep, 1 rank
///       set: {workload.accumulation: 2}     as --set takes it
///       cause: "…"                          of a miss that is understood
namespace tidegate {

struct SuiteCase {
  std::string name, cause;
  std::vector<Override> changes;
};

struct SuiteFile {
  std::string path;  ///< to which the scenario's own paths are relative
  yaml::Value scenario;
  std::vector<SuiteCase> cases;
};

/// Throws InputError with all problems of the file.
SuiteFile read_suite(const std::string& path);
/// The cases with `only` in their name. Throws InputError, with all names, when there is none.
std::vector<SuiteCase> chosen(const SuiteFile& file, const std::string& only);
/// The scenario of a case, changed further by `more`. Throws InputError that names the case.
Scenario scenario_of(const SuiteFile& file, const SuiteCase& c,
                     const std::vector<Override>& more = {});

}  // namespace tidegate
