#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace CLI {
class App;
}

/// What several commands share: where a scenario comes from, and how to print.
namespace tidegate {

/// To standard output. A reader that closed the pipe has seen enough; any other failure throws
/// MachineError.
void print(const std::string& text);

/// Of processes that a launcher started with the same command, the one that says what is wrong with
/// it (models/base/launch.hpp).
bool is_speaker();
/// For the others: exit code 2, after the speaker has had a second to say it; a launcher ends all
/// when one fails.
int fail_silently();

/// The exception that is being handled, told on standard error. Returns the exit code of its kind.
int tell_failure();

/// The path, unless it is a folder: then InputError.
std::string not_a_folder(const std::string& path);

/// A scenario and what replaces its values.
struct ScenarioFlags {
  std::string scenario;
  std::string hardware;
  std::vector<std::string> sets;
};
void add_scenario_flags(CLI::App& command, ScenarioFlags& flags);

/// A file, or the file of a scenario that ships with the program by its name.
std::string find_scenario(const std::string& asked);
/// The same of catalogs of machines.
std::string find_catalog(const std::string& asked);
std::vector<Override> overrides_of(const ScenarioFlags& flags);

}  // namespace tidegate
