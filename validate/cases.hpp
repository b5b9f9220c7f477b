#pragma once

#include <string>

#include "models/base/yaml.hpp"
#include "validate/published.hpp"
#include "validate/selection.hpp"

namespace tidegate {

/// Appends the rows of a file of measured runs, each predicted by simulation. `root` is the tree of
/// the file at `path`, beside which its scenarios lie. Throws InputError with places.
void add_cases(yaml::Value root, const std::string& path, Selection& selection, std::int32_t draws,
               Published& result);

}  // namespace tidegate
