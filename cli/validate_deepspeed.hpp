#pragma once

namespace CLI {
class App;
}

namespace tidegate {

/// `tidegate validate deepspeed`: DeepSpeed itself on a scenario, beside the prediction.
void add_validate_deepspeed(CLI::App& validate, int& code);

}  // namespace tidegate
