#include <algorithm>

#include <fmt/core.h>

#include "sim/graph/hugging_face.hpp"

/// GPT-2 and its kin, BERT and T5.
namespace tidegate {
namespace {

// GPT-2 and its kin: layer norms and biases everywhere, plain feed-forward, heads of hidden /
// heads.
Network read_gpt_like(Config& config, Keys layers, Keys hidden, Keys heads) {
  Network n;
  n.layers = config.size(layers);
  n.hidden = config.size(hidden);
  n.heads = n.kv_heads = config.size(heads);
  n.vocabulary = config.size({"vocab_size"});
  n.ffn = 4 * n.hidden;
  check_heads(config, n, heads, false);
  n.head_dim = std::max<std::int64_t>(n.hidden / n.heads, 1);
  n.norm = NormKind::layer_norm;
  n.has_attention_bias = n.has_output_bias = n.has_ffn_bias = n.has_norm_bias = true;
  n.is_tied = config.flag_or("tie_word_embeddings", true);
  return n;
}

}  // namespace

Network read_opt(Config& config) {
  Network n =
      read_gpt_like(config, {"num_hidden_layers"}, {"hidden_size"}, {"num_attention_heads"});
  n.ffn = config.size({"ffn_dim"});
  n.context = config.size({"max_position_embeddings"});
  n.max_positions = n.context + 2;  // two rows for padding, OPTLearnedPositionalEmbedding
  n.positions = Positions::learned;
  n.activation = activation_of(config, "activation_function", "relu");
  n.has_attention_bias = n.has_output_bias = n.has_ffn_bias = config.flag_or("enable_bias", true);
  n.is_post_norm = !config.flag_or("do_layer_norm_before", true);
  n.has_final_norm = !n.is_post_norm && !config.flag_or("_remove_final_layer_norm", false);
  n.registration = Registration::norms_after;
  if (const std::int64_t width = config.size_or({"word_embed_proj_dim"}, n.hidden);
      width != n.hidden && n.hidden > 1) {
    config.problem({"word_embed_proj_dim"},
                   fmt::format("is {}: embeddings of another width than hidden_size {} are not "
                               "supported",
                               width, n.hidden));
  }
  if (!config.flag_or("layer_norm_elementwise_affine", true)) {
    config.problem({"layer_norm_elementwise_affine"}, "norms without weights are not supported");
  }
  return n;
}

Network read_gpt2(Config& config) {
  Network n = read_gpt_like(config, {"n_layer", "num_hidden_layers"}, {"n_embd", "hidden_size"},
                            {"n_head", "num_attention_heads"});
  n.ffn = config.size_or({"n_inner"}, 4 * n.hidden);
  n.context = n.max_positions = config.size({"n_positions", "max_position_embeddings"});
  n.positions = Positions::learned;
  n.activation = activation_of(config, "activation_function", "gelu_new");
  n.has_fused_qkv = true;
  return n;
}

Network read_bloom(Config& config) {
  Network n =
      read_gpt_like(config, {"n_layer", "num_hidden_layers"}, {"hidden_size", "n_embed", "n_embd"},
                    {"n_head", "num_attention_heads"});
  n.context = config.size_or({"seq_length"}, 2048);
  n.positions = Positions::alibi;
  n.has_embedding_norm = true;
  n.has_fused_qkv = true;
  return n;
}

Network read_gpt_neox(Config& config) {
  Network n =
      read_gpt_like(config, {"num_hidden_layers"}, {"hidden_size"}, {"num_attention_heads"});
  n.ffn = config.size({"intermediate_size"});
  n.context = config.size_or({"max_position_embeddings"}, 2048);
  n.positions = Positions::rotary;
  const auto rotated = config.find({"rotary_pct"});
  n.rotary_fraction = rotated ? rotated->fraction() : 0.25;
  n.activation = activation_of(config, "hidden_act", "gelu");
  n.has_attention_bias = n.has_output_bias = config.flag_or("attention_bias", true);
  n.is_parallel_residual = config.flag_or("use_parallel_residual", true);
  n.is_tied = config.flag_or("tie_word_embeddings", false);
  n.has_fused_qkv = true;
  n.registration = Registration::norms_first;
  return n;
}

Network read_t5(Config& config) {
  Network n;
  n.family = Family::encoder_decoder;
  n.encoder_layers = config.size({"num_layers", "num_hidden_layers"});
  n.layers = config.size_or({"num_decoder_layers"}, n.encoder_layers);
  n.hidden = config.size({"d_model", "hidden_size"});
  n.ffn = config.size({"d_ff"});
  n.heads = n.kv_heads = config.size({"num_heads", "num_attention_heads"});
  n.head_dim = config.size({"d_kv"});
  n.vocabulary = config.size({"vocab_size"});
  n.relative_buckets = config.size_or({"relative_attention_num_buckets"}, 32);
  n.context = config.size_or({"n_positions"}, 512);
  n.norm = NormKind::rms_norm;
  n.positions = Positions::relative_bias;
  n.has_gated_ffn = config.text_or("feed_forward_proj", "relu").starts_with("gated-");
  n.activation = activation_of(config, "feed_forward_proj", "relu");
  n.is_tied = config.flag_or("tie_word_embeddings", true);
  n.registration = Registration::norms_after;
  return n;
}

Network read_bert(Config& config) {
  Network n =
      read_gpt_like(config, {"num_hidden_layers"}, {"hidden_size"}, {"num_attention_heads"});
  n.family = Family::encoder;
  n.ffn = config.size({"intermediate_size"});
  n.context = n.max_positions = config.size({"max_position_embeddings"});
  n.token_types = config.size_or({"type_vocab_size"}, 2);
  n.positions = Positions::learned;
  n.activation = activation_of(config, "hidden_act", "gelu");
  n.has_embedding_norm = true;
  n.has_final_norm = false;
  n.is_post_norm = true;
  n.head = Head::pooler;
  return n;
}

Network read_roberta(Config& config) {
  Network n = read_bert(config);
  n.context = std::max<std::int64_t>(n.max_positions - 2, 1);  // rows before padding_idx + 1 = 2
  return n;
}

}  // namespace tidegate
