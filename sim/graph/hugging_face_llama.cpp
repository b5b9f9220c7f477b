#include <algorithm>

#include <fmt/core.h>

#include "sim/graph/hugging_face.hpp"

/// Families of RMS norms, rotary positions and gated feed-forward parts.
namespace tidegate {
namespace {

// What a family's configuration class assumes when a key is missing; 0: derived from the others.
struct LlamaDefaults {
  std::int64_t kv_heads = 0, head_dim = 0, sliding_window = 0;
  bool is_tied = false;
  const char* activation = "silu";
};

void read_window(Config& config, Network& n, const LlamaDefaults& defaults) {
  const bool is_written = !config.is_absent("sliding_window");
  n.sliding_window =
      config.size_or({"sliding_window"}, is_written ? 0 : defaults.sliding_window, 0);
  n.context = config.size_or({"max_position_embeddings"}, 0);
}

Network read_llama_like(Config& config, const LlamaDefaults& defaults) {
  Network n;
  n.layers = config.size({"num_hidden_layers"});
  n.hidden = config.size({"hidden_size"});
  n.ffn = config.size({"intermediate_size"});
  n.heads = config.size({"num_attention_heads"});
  n.vocabulary = config.size({"vocab_size"});
  // Written as null, kv heads follow the query heads; left out, the class's own default counts.
  const bool kv_absent = config.is_absent("num_key_value_heads");
  const std::int64_t kv = kv_absent && defaults.kv_heads > 0 ? defaults.kv_heads : n.heads;
  n.kv_heads = config.size_or({"num_key_value_heads"}, kv);
  const std::int64_t own = config.size_or({"head_dim"}, defaults.head_dim, 1);
  check_heads(config, n, {"num_attention_heads"}, own > 0);
  n.head_dim = own > 0 ? own : std::max<std::int64_t>(n.hidden / n.heads, 1);
  n.has_gated_ffn = true;
  n.activation = activation_of(config, "hidden_act", defaults.activation);
  n.norm = NormKind::rms_norm;
  n.positions = Positions::rotary;
  n.is_tied = config.flag_or("tie_word_embeddings", defaults.is_tied);
  n.registration = Registration::norms_last;
  read_window(config, n, defaults);
  return n;
}

// Windows of Qwen hold only when switched on, and then from block max_window_layers upwards.
void read_qwen_window(Config& config, Network& n) {
  if (!config.flag_or("use_sliding_window", false)) n.sliding_window = 0;
  const std::int64_t first = config.size_or({"max_window_layers"}, 28, 0);
  if (first >= n.layers) n.sliding_window = 0;
  if (n.sliding_window > 0 && first > 0) {
    config.problem({"use_sliding_window"},
                   "switches the window on for some blocks only; not supported, write false");
  }
}

}  // namespace

Network read_llama(Config& config) {
  Network n = read_llama_like(config, {});
  n.has_attention_bias = n.has_output_bias = config.flag_or("attention_bias", false);
  n.has_ffn_bias = config.flag_or("mlp_bias", false);
  return n;
}

Network read_mistral(Config& config) {
  return read_llama_like(config, {.kv_heads = 8, .sliding_window = 4096});
}

Network read_mixtral(Config& config) {
  Network n = read_llama_like(config, {.kv_heads = 8});
  n.experts = config.size_or({"num_local_experts"}, 8);
  n.experts_per_token = config.size_or({"num_experts_per_tok"}, 2);
  return n;
}

Network read_qwen2(Config& config) {
  Network n = read_llama_like(config, {.kv_heads = 32, .sliding_window = 4096});
  n.has_attention_bias = true;
  read_qwen_window(config, n);
  return n;
}

Network read_qwen3(Config& config) {
  Network n = read_llama_like(config, {.kv_heads = 32, .head_dim = 128, .sliding_window = 4096});
  n.has_attention_bias = n.has_output_bias = config.flag_or("attention_bias", false);
  n.has_qk_norm = true;
  read_qwen_window(config, n);
  return n;
}

Network read_qwen3_moe(Config& config) {
  // Only sparse blocks: a mixture of block kinds would need two shapes.
  Network n = read_llama_like(config, {.kv_heads = 4, .sliding_window = 4096});
  n.has_attention_bias = n.has_output_bias = config.flag_or("attention_bias", false);
  n.has_qk_norm = true;
  n.ffn = config.size_or({"moe_intermediate_size"}, 768);
  n.experts = config.size_or({"num_experts"}, 128);
  n.experts_per_token = config.size_or({"num_experts_per_tok"}, 8);
  if (config.size_or({"decoder_sparse_step"}, 1) != 1) {
    config.problem({"decoder_sparse_step"}, "makes some blocks dense; only 1 is supported");
  }
  if (const auto dense = config.find({"mlp_only_layers"}); dense && !dense->items().empty()) {
    dense->problem("makes some blocks dense; only an empty list is supported");
  }
  if (!config.flag_or("use_sliding_window", false)) n.sliding_window = 0;
  return n;
}

Network read_gemma(Config& config) {
  Network n = read_llama_like(
      config, {.kv_heads = 16, .head_dim = 256, .is_tied = true, .activation = "gelu"});
  n.has_attention_bias = n.has_output_bias = config.flag_or("attention_bias", false);
  return n;
}

}  // namespace tidegate
