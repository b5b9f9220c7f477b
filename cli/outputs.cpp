#include "cli/outputs.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include <unistd.h>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

namespace tidegate {
namespace {

namespace fs = std::filesystem;

constexpr const char* output_mark = "output";

// What is wrong with a file that is to be written; empty: nothing.
std::string trouble_of(const std::string& file, Dash dash) {
  std::error_code absent;
  if (file.empty()) return "names no file";
  if (file == "-")
    return dash == Dash::is_standard_output ? "" : "- is no file here; name one, or ./- for that";
  if (fs::is_directory(file, absent)) return file + " is a folder; name a file in it";
  const fs::path parent = fs::path(file).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!fs::is_directory(folder, absent)) return "there is no folder " + folder;
  // Beside it a new one is written, which takes its place; a device or a pipe is written to.
  const bool is_special = fs::exists(file, absent) && !fs::is_regular_file(file, absent);
  const std::string& written = is_special ? file : folder;
  if (access(written.c_str(), W_OK) != 0)
    return fmt::format("{} cannot be written to: {}", written, std::strerror(errno));
  return "";
}

bool is_output(CLI::Option& option) {
  try {
    return option.get_validator(output_mark) != nullptr;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code absent;
  if (fs::equivalent(a, b, absent)) return true;
  const auto whole = [&](const std::string& path) {
    return fs::weakly_canonical(fs::absolute(path, absent), absent);
  };
  return whole(a) == whole(b);
}

// Of what the command reads, files that are named as such; a profile or a scenario by its name is
// none of the person's.
void check_distinct(CLI::App& command) {
  const std::vector<CLI::Option*> options =
      command.get_options([](const CLI::Option* option) { return option->count() > 0; });
  std::error_code absent;
  for (CLI::Option* output : options) {
    if (!is_output(*output)) continue;
    const std::string& file = output->results().back();
    if (fs::exists(file, absent) && !fs::is_regular_file(file, absent)) continue;
    for (CLI::Option* other : options) {
      if (other == output) continue;
      const bool writes = is_output(*other);
      for (const std::string& name : other->results()) {
        if ((!writes && !fs::is_regular_file(name, absent)) || !is_same_file(file, name)) continue;
        throw CLI::ValidationError(output->get_name(),
                                   fmt::format("{} is what {} {}; name another file", file,
                                               other->get_name(), writes ? "writes too" : "reads"));
      }
    }
  }
}

}  // namespace

CLI::Option* add_output(CLI::App& command, const std::string& flags, std::string& file,
                        const std::string& help, Dash dash) {
  const auto check = [dash](std::string& text) { return trouble_of(text, dash); };
  CLI::Option* option = command.add_option(flags, file, help)
                            ->type_name("FILE")
                            ->check(CLI::Validator(check, "", output_mark));
  command.parse_complete_callback([&command] { check_distinct(command); });
  return option;
}

}  // namespace tidegate
