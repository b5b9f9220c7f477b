#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/common.hpp"
#include "sim/deepspeed/remark.hpp"

/// Where a prediction starts: a scenario file, or a network and a node on the command line; a
/// ds_config.json beside either.
namespace tidegate {

/// Zero and "" mean: not given.
struct StartFlags : ScenarioFlags {
  std::string network;    ///< --hf
  std::string deepspeed;  ///< of a scenario it replaces policy, batch and data type
  std::string gpu_times;  ///< a trace whose kernel times replace the profile's
  std::int64_t sequence = 0, micro_batch = 0, accumulation = 0, ranks = 0;
};
/// The scenario becomes optional.
void add_start_flags(CLI::App& command, StartFlags& flags);

struct Start {
  ScenarioSource source;
  std::vector<Remark> remarks;     ///< on the ds_config.json
  std::vector<std::string> notes;  ///< on the trace of GPU times
};
/// Throws InputError when flags are missing or do not go together, and for wrong files. `overrides`
/// say on which machine and of which network a ds_config.json is read; those that a trace of GPU
/// times makes are added.
Start start_of(const StartFlags& flags, std::vector<Override>& overrides);

/// The words of a command line that starts at the same place.
std::string words_of(const StartFlags& flags);

}  // namespace tidegate
