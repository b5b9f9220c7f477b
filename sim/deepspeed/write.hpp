#pragma once

#include <string>
#include <vector>

#include "models/base/yaml.hpp"
#include "sim/deepspeed/remark.hpp"
#include "sim/scenario/scenario.hpp"

/// A scenario as files and flags that an engine reads. Which key becomes which: docs/deepspeed.md.
namespace tidegate {

struct DeepSpeedFile {
  std::string json;             ///< a ds_config.json, counts in elements
  std::vector<Remark> remarks;  ///< what it cannot say, and what has to be written into it by hand
};

/// `values` is what `scenario` was read from, overrides in place (scenario_values): policies are
/// asked for options by their text. With mlp_offload the file is one for that system's fork, and
/// DeepSpeed itself refuses it. read_deepspeed gives the same policy again where no remark says
/// otherwise.
DeepSpeedFile write_deepspeed(const yaml::Value& values, const Scenario& scenario);

/// The same layout and recomputation as flags of a training script.
struct MegatronFlags {
  std::vector<std::string> common;              ///< of Megatron-LM and Megatron-DeepSpeed
  std::vector<std::string> megatron_lm;         ///< of the first besides
  std::vector<std::string> megatron_deepspeed;  ///< of the second besides
  std::vector<Remark> remarks;
};
MegatronFlags megatron_flags(const yaml::Value& values, const Scenario& scenario,
                             const std::string& deepspeed_file);

/// A section of a policy: its name and the map of its options.
struct PolicyChoice {
  std::string name;
  yaml::Value options;
};
PolicyChoice policy_choice(const yaml::Value& values, const char* section, const char* usual);

/// Ranks that share ZeRO's states: all, divided by tensor and pipeline parallelism.
std::int64_t data_parallel_of(const Scenario& scenario);

}  // namespace tidegate
