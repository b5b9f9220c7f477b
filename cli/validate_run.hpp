#pragma once

namespace CLI {
class App;
}

namespace tidegate {

/// `validate run` and `validate suite`: plans that are run for real beside their prediction.
void add_validate_run(CLI::App& validate, int& code);
void add_validate_suite(CLI::App& validate, int& code);

}  // namespace tidegate
