#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/start.hpp"

namespace tidegate {

struct PlotFlags {
  StartFlags start;
  std::vector<std::int64_t> micro_batches;
  std::vector<std::string> policies;
  std::string file;
  bool json = false;
};

/// The command `plot` and its pictures.
void add_plot(CLI::App& app, PlotFlags& flags);

}  // namespace tidegate
