#pragma once

#include <cstdint>
#include <string>

#include "models/base/yaml.hpp"
#include "sim/graph/workload.hpp"

namespace tidegate {

/// The GPT of Korthikanti et al. 2022: layer norm, GELU, 4h feed-forward, both dropouts, scores in
/// memory. Learned positions and the vocabulary do not touch the blocks.
inline Workload gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  Workload w;
  w.network = {.layers = layers,
               .hidden = hidden,
               .ffn = 4 * hidden,
               .heads = heads,
               .kv_heads = heads,
               .head_dim = hidden / heads,
               .vocabulary = 51200,
               .max_positions = 2048,
               .norm = NormKind::layer_norm,
               .positions = Positions::learned};
  w.sequence = 2048;
  w.kernels.flash_attention = false;
  w.kernels.attention_dropout = w.kernels.hidden_dropout = 0.1;
  w.dtype = DType::fp16;
  return w;
}

/// A workload section given as text.
inline Workload workload_from(const std::string& text) {
  yaml::Document document(yaml::load_text(text, "in.yaml"));
  const Workload workload = read_workload(document.root(), TIDEGATE_SOURCE_DIR "/tests/data");
  document.finish();
  return workload;
}

/// What reading `text` says is wrong.
inline std::string fault_of(const std::string& text) {
  try {
    workload_from(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace tidegate
