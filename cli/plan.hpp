#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/start.hpp"

namespace tidegate {

struct PlanFlags : StartFlags {
  std::string catalog, csv, html;
  double tokens = 1e9;
  std::optional<double> days, budget;
  std::int64_t batch = 0;  ///< sequences of an iteration
  std::size_t simulations = 16, threads = 0;
  double margin = 1;
  std::int32_t draws = 0;
  std::uint64_t seed = 1;
  bool json = false, all = false;
};
void add_plan(CLI::App& app, PlanFlags& flags, int& code);

}  // namespace tidegate
