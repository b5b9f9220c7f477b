#pragma once

namespace CLI {
class App;
}

namespace tidegate {

/// The commands `validate published` and `validate field`: exit code 1 when a gate is missed.
void add_published(CLI::App& validate, int& code);
void add_field(CLI::App& validate, int& code);

}  // namespace tidegate
