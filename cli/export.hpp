#pragma once

#include <string>

#include "cli/common.hpp"

namespace tidegate {

struct ExportFlags {
  ScenarioFlags scenario;
  std::string deepspeed;  ///< a file, "-" for standard output, "" for none
  bool megatron = false;
};

/// The command `export`: a scenario as a file and flags of the engine that is to run it.
void add_export(CLI::App& app, ExportFlags& flags);

}  // namespace tidegate
