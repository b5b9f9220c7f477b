#pragma once

#include "models/base/yaml.hpp"
#include "validate/published.hpp"
#include "validate/selection.hpp"

namespace tidegate {

/// Appends the rows of a file of model runs: gpus, networks, and runs with what the published model
/// gives for each. `root` is the file's tree. Throws InputError with places.
void add_model_runs(yaml::Value root, Selection& selection, Published& result);

}  // namespace tidegate
