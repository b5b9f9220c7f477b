#pragma once

#include <span>
#include <string_view>

namespace tidegate {

/// The keys of one section of a ds_config.json, by what becomes of them here.
struct KnownKeys {
  std::span<const std::string_view> read;           ///< become part of a scenario, or a remark
  std::span<const std::string_view> harmless;       ///< neither time nor memory of a step
  std::span<const std::string_view> simulated_on;   ///< on by default; off is not simulated
  std::span<const std::string_view> not_simulated;  ///< off by default; on is not simulated
  /// DeepSpeed checks the keys of this section and stops at others; else it never looks at them.
  bool is_strict = false;
};

/// Sections: "" (the top level), zero_optimization, and in it offload_optimizer and offload_param;
/// aio, bf16, fp16, activation_checkpointing, data_types. Source: deepspeed/runtime/config.py,
/// constants.py, precision_config.py, zero/config.py, zero/offload_config.py and
/// swap_tensor/constants.py of deepspeedai/DeepSpeed (1b88ac36, 19786176). Strict are sections read
/// by DeepSpeedConfigModel, which forbids extra fields (config_utils.py; DeepSpeed pull request
/// 2004).
const KnownKeys& known_keys(std::string_view section);

}  // namespace tidegate
