#pragma once

namespace CLI {
class App;
}

namespace tidegate {

/// `tidegate validate log`: what an engine logged, beside the prediction.
void add_validate_log(CLI::App& validate, int& code);

}  // namespace tidegate
