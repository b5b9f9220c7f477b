#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/start.hpp"

namespace tidegate {

struct TuneFlags : StartFlags {
  std::vector<std::string> over, only, limits;
  std::string csv, html, results;
  std::size_t threads = 0, simulations = 0;
  double margin = 1;  ///< percent
  bool json = false, resumes = false;
};

/// The command `tune`. It may be interrupted: exit code 130, with what was found until then.
void add_tune(CLI::App& app, TuneFlags& flags, int& code);

}  // namespace tidegate
