#pragma once

#include <string>

#include "cli/common.hpp"

namespace tidegate {

struct ExplainFlags {
  std::string word;
  ScenarioFlags in;  ///< where the value of a key is looked up
};

/// The commands `explain` and `schema`: what keys and words mean, for people and for editors.
void add_explain(CLI::App& app, ExplainFlags& flags);
void add_schema(CLI::App& app);

}  // namespace tidegate
