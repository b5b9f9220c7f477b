#pragma once

#include <string>

/// What a command says beside its answer, on standard error. That nobody can read it (a closed
/// pipe, a full disk) is no fault of the command.
namespace tidegate {

void say(const std::string& text);

/// On a terminal a line that the next one replaces, cut to the terminal's width, as one that wraps
/// could not be wiped; "" wipes it. Elsewhere nothing.
void say_line(const std::string& text);

}  // namespace tidegate
