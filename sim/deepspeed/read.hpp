#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/base/yaml.hpp"
#include "sim/deepspeed/remark.hpp"

/// DeepSpeed's ds_config.json as part of a scenario. Which key becomes which: docs/deepspeed.md.
namespace tidegate {

/// What a ds_config.json leaves open.
struct DeepSpeedSetting {
  std::int64_t data_parallel = 1;
  /// Of a step where the file has none, or "auto"; nothing: TrainingArguments' defaults.
  std::optional<std::int64_t> micro_batch, accumulation;
  std::optional<std::string> dtype;  ///< where bf16 and fp16 are "auto"; nothing: bf16
  std::int64_t hidden = 0;           ///< width of the network, which "auto" needs; 0: unknown
  std::int64_t largest_tensor = 0;   ///< elements of the largest parameter; 0: unknown
  std::vector<std::string> paths;    ///< storage paths of a node
};

struct DeepSpeedRun {
  /// A `policy:` section without activations, on which a ds_config.json has no say. Places are
  /// those of the file, so that what is wrong with the policy is said of the file.
  yaml::Value policy;
  std::int64_t micro_batch = 1, accumulation = 1;
  std::string dtype = "bf16";
  std::vector<Remark> remarks;
};

/// Pinned buffers that DeepSpeed's swapper of optimizer states holds at most: four (parameter,
/// gradient, two moments) of the sub-group that is updated, four of the one that is read ahead,
/// four of the one that is written behind. With fewer it stops (deepspeed/runtime/swap_tensor/
/// pipelined_optimizer_swapper.py).
std::int64_t swap_buffers_needed(bool is_read_pipelined, bool is_write_pipelined);

/// Reads the values of a ds_config.json as DeepSpeed would, and as the Hugging Face Trainer where
/// it says "auto". Every setting ends in `policy`, in a remark, or is known to have no influence on
/// a step. Throws InputError with all places of wrong types and values, of a batch that does not
/// divide, of nvme without a path.
DeepSpeedRun read_deepspeed(const yaml::Value& file, const DeepSpeedSetting& setting);

}  // namespace tidegate
