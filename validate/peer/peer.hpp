#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/base/error.hpp"
#include "models/base/yaml.hpp"
#include "sim/deepspeed/remark.hpp"
#include "sim/scenario/scenario.hpp"

/// DeepSpeed itself, running the network, batch and policy of a scenario (docs/logs.md).
namespace tidegate {

/// Why validate/peer/train.py cannot stand for the scenario, each with its place and what to do;
/// empty when it can. The script knows pre-norm decoders whose blocks are alike, kept or recomputed
/// whole, and data parallelism on one node.
std::vector<Problem> peer_refusals(const yaml::Value& values, const Scenario& scenario);

struct PeerOptions {
  std::string swap;  ///< folder for what DeepSpeed keeps on drives
  std::int64_t iterations = 10;
};
struct PeerFiles {
  std::string scenario;         ///< scenario.json: the shape and batch that train.py reads
  std::string config;           ///< ds_config.json, with timers on
  std::vector<Remark> remarks;  ///< what of the scenario DeepSpeed has nothing for
};
/// `values` is what `scenario` was read from (scenario_values). Throws InputError with all
/// refusals.
PeerFiles peer_files(const yaml::Value& values, const Scenario& scenario,
                     const PeerOptions& options);

/// Writes train.py, scenario.json and ds_config.json into a new folder, all or nothing. Throws
/// InputError when `folder` exists, MachineError when it cannot be written.
void write_peer(const std::string& folder, const PeerFiles& files);

/// The words of the command that runs the script on `ranks` processes.
std::vector<std::string> peer_command(const std::string& python, const std::string& folder,
                                      std::int64_t ranks);

/// "0.16.9", or an empty text when `python` cannot import DeepSpeed, or is not there.
std::string deepspeed_version(const std::string& python);

/// Runs a command whose standard output and error go to the file `log`, to its end. Returns the
/// exit code, or 128 plus the signal that ended it. Throws MachineError when it cannot be started.
int run_logged(const std::vector<std::string>& command, const std::string& log);

}  // namespace tidegate
