#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// Files that commands write. Whether they can be is said before anything is computed: a search
/// takes minutes, and what it found would be lost.
namespace tidegate {

enum class Dash { is_no_file, is_standard_output };

/// A flag that names a file to write. A folder, a file in a folder that is not there or cannot be
/// written to, another output's file and a file that the command reads are wrong flags.
CLI::Option* add_output(CLI::App& command, const std::string& flags, std::string& file,
                        const std::string& help, Dash dash = Dash::is_no_file);

}  // namespace tidegate
