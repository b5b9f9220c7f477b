#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tidegate {

/// What is wrong with the words of a command line that no command takes, and what would be right:
/// "there is no command 'simulte'; did you mean 'simulate'?". Of an app that has refused them.
std::string unexpected_text(const CLI::App& app);

}  // namespace tidegate
