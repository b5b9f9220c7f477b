#pragma once

#include <string>

#include "models/base/yaml.hpp"

namespace tidegate::calib {

/// A scalar as YAML reads it back: in double quotes where plain text would be read otherwise.
std::string scalar_text(const std::string& text);
/// A value on one line: {key: value, list: [1, 2]}.
std::string flow_text(const yaml::Value& value);

}  // namespace tidegate::calib
