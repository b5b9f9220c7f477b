#include "cli/unexpected.hpp"

#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

// "validate run", and the command that was reached.
struct Reached {
  const CLI::App* command;
  std::string name;
};

Reached reached(const CLI::App& app) {
  Reached at{&app, "tidegate"};
  while (!at.command->get_subcommands().empty()) {
    at.command = at.command->get_subcommands().front();
    at.name += " " + at.command->get_name();
  }
  return at;
}

std::string meant(const std::string& word, const std::vector<std::string>& names) {
  const std::string near = nearest(word, names);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

std::string flag_text(const std::string& word, const Reached& at) {
  std::vector<std::string> names;
  for (const CLI::Option* option : at.command->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::string flag = word.substr(0, word.find('='));
  return fmt::format("{}: {} has no such flag{}", flag, at.name, meant(flag, names));
}

std::string word_text(const std::string& word, const Reached& at) {
  std::vector<std::string> names;
  for (const CLI::App* command : at.command->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  if (names.empty()) return fmt::format("{}: is one word too many for {}", word, at.name);
  return fmt::format("{}: there is no such command of {}{}", word, at.name, meant(word, names));
}

}  // namespace

std::string unexpected_text(const CLI::App& app) {
  const Reached at = reached(app);
  const std::vector<std::string> words = app.remaining(true);
  std::string text;
  // What follows an unknown word is of no use.
  if (!words.empty())
    text = words.front().starts_with('-') ? flag_text(words.front(), at)
                                          : word_text(words.front(), at);
  return text + fmt::format("\nHelp: {} --help\n", at.name);
}

}  // namespace tidegate
