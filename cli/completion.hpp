#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

/// Completion of command lines in bash, zsh and fish.
///
/// The scripts know nothing: they ask the program itself (`tidegate __complete WORD…`), which reads
/// its own tree of commands, so that no script is ever out of date.
namespace tidegate {

/// The command `completion`, which prints a shell's script.
void add_completion(CLI::App& app);

/// `tidegate __complete WORD…`: prints what the last word, maybe empty, could become, a line each.
bool is_completing(int argc, char** argv);
int complete(const CLI::App& app, int argc, char** argv);

/// What the last of these words could become, behind the program's name.
std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace tidegate
