#pragma once

#include <string>
#include <string_view>

#include "sim/deepspeed/read.hpp"

/// What the parts of read_deepspeed share while they read one file.
namespace tidegate {

bool is_auto(const yaml::Node& node);
/// A flag of a section; the fallback where it is missing or "auto".
bool flag_of(yaml::Map& map, const char* key, bool fallback);
/// "true", "false"
std::string flag_text(bool value);

struct Reading {
  const DeepSpeedSetting& setting;
  DeepSpeedRun run;
  yaml::Value nothing;  ///< an empty map at the file's place, for sections that are missing

  void remark(RemarkKind kind, const yaml::Node& node, const std::string& text);
  /// A key of the policy.
  void put(const std::string& key, const std::string& text, const Where& where);
  /// A count of elements. DeepSpeed takes 5e8 and "500000000", but not "5e8".
  std::int64_t elements(const yaml::Node& node, std::int64_t least);
  /// The section, or an empty one where a flag or nothing stands for it.
  yaml::Node section_of(const std::optional<yaml::Node>& node, const yaml::Node& beside,
                        const char* path) const;
  /// Remarks on the keys of a section that are unknown or not simulated.
  void look_over(const yaml::Node& node, std::string_view section);
};

/// train_batch_size = train_micro_batch_size_per_gpu · gradient_accumulation_steps · data parallel.
/// What is missing follows as in _set_batch_related_parameters of deepspeed/runtime/config.py.
void read_batch(Reading& reading, yaml::Map& top);

/// sub_group_size, which is 1e9 when missing (zero/config.py).
void read_sub_group(Reading& reading, yaml::Map& zero);
/// offload_optimizer with device nvme at stage 3; MLP-Offload's where its keys are used.
void read_nvme_optimizer(Reading& reading, yaml::Map& zero, const yaml::Node& section);
/// offload_param with device nvme at stage 3.
void read_nvme_parameters(Reading& reading, const yaml::Node& section);
void read_aio(Reading& reading, yaml::Map& top, bool uses_files);

/// offload_param, offload_optimizer and their deprecated forms, sub_group_size, aio.
void read_offload(Reading& reading, yaml::Map& top, yaml::Map& zero, std::int64_t stage);

}  // namespace tidegate
