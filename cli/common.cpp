#include "cli/common.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "cli/keys.hpp"
#include "cli/say.hpp"
#include "models/base/error.hpp"
#include "models/base/launch.hpp"
#include "models/base/yaml.hpp"
#include "models/profile.hpp"

namespace tidegate {

namespace fs = std::filesystem;

namespace {

// A path given on the command line is relative to where the person stands, not to the scenario.
std::string hardware_override(const std::string& hardware) {
  const bool is_path = hardware.find('/') != std::string::npos || hardware.ends_with(".yaml");
  try {
    find_profile(hardware, ".");
  } catch (const InputError& error) {
    throw InputError("--hardware: " + error.problems().front().text);
  }
  return yaml::word(is_path ? fs::absolute(hardware).lexically_normal().string() : hardware);
}

// A file, or the file of that name in a folder of the source tree.
std::string find_shipped(const std::string& asked, const char* what, const char* folder) {
  if (fs::exists(asked)) return not_a_folder(asked);
  const fs::path dir = fs::path(TIDEGATE_DATA_DIR) / folder;
  std::vector<std::string> names;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(dir, absent)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  if (std::ranges::find(names, asked) != names.end()) return (dir / (asked + ".yaml")).string();
  std::string text = fmt::format("there is no {} {}; ", what, asked);
  const std::string near = nearest(fs::path(asked).stem().string(), names);
  if (!near.empty()) text += fmt::format("did you mean {}? ", near);
  text += fmt::format("those in {}:", dir.string());
  for (const std::string& name : names) text += " " + name;
  throw InputError(text);
}

}  // namespace

void print(const std::string& text) {
  errno = 0;
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (is_written || errno == EPIPE) return;
  throw MachineError(fmt::format("standard output: cannot be written: {}", std::strerror(errno)));
}

bool is_speaker() { return is_speaker(launch_environment()); }

int fail_silently() {
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return 2;
}

int tell_failure() {
  try {
    throw;
  } catch (const InputError& error) {
    say(fmt::format("{}\n", error.what()));
    return 2;
  } catch (const MachineError& error) {
    say(fmt::format("{}\n", error.what()));
    return 3;
  } catch (const std::exception& error) {
    say(fmt::format("internal error: {}\nPlease report this with the command line.\n",
                    error.what()));
    return 4;
  }
}

std::string not_a_folder(const std::string& path) {
  if (fs::is_directory(path)) throw InputError({path, 0, 0}, "", "is a folder; give a file");
  return path;
}

std::string find_scenario(const std::string& asked) {
  return find_shipped(asked, "scenario", "scenarios");
}
std::string find_catalog(const std::string& asked) {
  return find_shipped(asked, "catalog", "catalogs");
}

std::vector<Override> overrides_of(const ScenarioFlags& flags) {
  std::vector<Override> overrides;
  if (!flags.hardware.empty())
    overrides.emplace_back("hardware", hardware_override(flags.hardware));
  for (const std::string& text : flags.sets) {
    overrides.push_back(read_override(text));
    check_key("--set", overrides.back().first);
  }
  return overrides;
}

void add_scenario_flags(CLI::App& command, ScenarioFlags& flags) {
  command
      .add_option("scenario", flags.scenario,
                  "scenario file (docs/scenario.md), or the name of one in scenarios/")
      ->type_name("SCENARIO")
      ->required();
  command
      .add_option("--hardware", flags.hardware,
                  "profile instead of the scenario's: a name of hw_profiles/ or a file")
      ->type_name("PROFILE");
  command
      .add_option("--set", flags.sets,
                  "override a key, of the profile when it begins with machine.; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        return text.find('=') == std::string::npos
                   ? text + ": write key=value, for example policy.optimizer.buffer_count=32"
                   : std::string();
      });
}

}  // namespace tidegate
