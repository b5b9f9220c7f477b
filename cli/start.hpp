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

/// What a command does with a start: it predicts on the machine that is named, or takes the
/// workload to machines of its own. Then a network needs no --hardware, and has no policy.
enum class StartUse : std::uint8_t { prediction, workload };

struct Start {
  ScenarioSource source;
  std::vector<std::string> sets;   ///< "key=value": what the ds_config.json became
  std::vector<Remark> remarks;     ///< on the ds_config.json
  std::vector<std::string> notes;  ///< on the trace of GPU times
};
/// Throws InputError when flags are missing or do not go together, and for wrong files. `overrides`
/// say on which machine and of which network a ds_config.json is read; those that a trace of GPU
/// times makes are added.
Start start_of(const StartFlags& flags, std::vector<Override>& overrides,
               StartUse use = StartUse::prediction);

/// Tokens of a sequence where nobody says: as long as the network was made for, at most 4096.
std::int64_t usual_sequence(const Network& network);

/// The words of a command line that starts at the same place.
std::string words_of(const StartFlags& flags);
/// The same for variations: with what the ds_config.json became in place of the file, which is
/// refused where another machine or layout contradicts its batch.
std::string words_of(StartFlags flags, const Start& start);

/// Says on standard error what became of the ds_config.json and the trace, for commands whose
/// output has no place for it.
void tell_start(const Start& start);

}  // namespace tidegate
