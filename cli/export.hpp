#pragma once

#include <string>

#include "cli/start.hpp"

namespace tidegate {

struct ExportFlags {
  StartFlags start;
  std::string deepspeed;  ///< a file, "-" for standard output, "" for none
  bool megatron = false;
};

/// The command `export`: a scenario as a file and flags of the engine that is to run it.
void add_export(CLI::App& app, ExportFlags& flags);

}  // namespace tidegate
