#pragma once

#include <string>

#include "models/base/yaml.hpp"
#include "validate/published.hpp"
#include "validate/selection.hpp"

namespace tidegate {

/// Appends the bands of a file: for each, a quantity of one simulated run over that of another.
/// `root` is the tree of the file at `path`, beside which its scenarios lie. Throws InputError with
/// places.
void add_bands(yaml::Value root, const std::string& path, Selection& selection, Published& result);

}  // namespace tidegate
