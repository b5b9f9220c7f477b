#pragma once

#include <string>

#include "sim/deepspeed/read.hpp"

/// A ds_config.json as text, and what became of it.
namespace tidegate::test {

/// Two ranks of a node with the storage paths nvme and pfs.
inline DeepSpeedSetting two_ranks() {
  return {.data_parallel = 2,
          .micro_batch = {},
          .accumulation = {},
          .dtype = {},
          .hidden = 0,
          .largest_tensor = 0,
          .paths = {"nvme", "pfs"}};
}

inline DeepSpeedRun read(const std::string& text, const DeepSpeedSetting& setting = two_ranks()) {
  return read_deepspeed(yaml::load_text(text, "ds.json"), setting);
}

/// A file of one sequence per rank and step with this zero_optimization, and more keys.
inline DeepSpeedRun read_zero(const std::string& zero, const std::string& more = "",
                              const DeepSpeedSetting& setting = two_ranks()) {
  return read(R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true},
"zero_optimization": )" +
                  zero + more + "}",
              setting);
}

/// A value of the policy as text, of a list its items; "absent" when there is none.
inline std::string value_of(const yaml::Value& policy, const std::string& path) {
  const yaml::Value* at = &policy;
  for (std::size_t from = 0; at && from <= path.size();) {
    const std::size_t end = std::min(path.find('.', from), path.size());
    at = at->find(path.substr(from, end - from));
    from = end + 1;
  }
  if (!at) return "absent";
  std::string text = at->text;
  for (const yaml::Value& item : at->items) text += (text.empty() ? "" : " ") + item.text;
  return text;
}

/// The first remark on a key, "kind: keys: text", or "none".
inline std::string remark_on(const std::vector<Remark>& remarks, const std::string& key) {
  for (const Remark& r : remarks) {
    if (r.key.find(key) != std::string::npos) return to_text(r);
  }
  return "none";
}

}  // namespace tidegate::test
