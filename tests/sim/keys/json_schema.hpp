#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace tidegate::test {

/// What a value breaks of a JSON Schema, "" when nothing: the subset of draft 2020-12 that our
/// schemas use. A keyword outside it throws, so that no rule goes unchecked.
std::string violation(const nlohmann::json& schema, const nlohmann::json& value,
                      const nlohmann::json& root, const std::string& at = "");

}  // namespace tidegate::test
