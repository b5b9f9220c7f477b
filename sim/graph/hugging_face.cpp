#include <algorithm>
#include <array>
#include <initializer_list>

#include <fmt/core.h>

#include "sim/graph/workload.hpp"

/// Keys and defaults are those of each family's configuration class in the transformers library
/// (version 4.5x; src/transformers/models/<family>/configuration_<family>.py), shapes those of its
/// modeling file.
namespace tidegate {
namespace {

using Keys = std::initializer_list<const char*>;

// A config.json under reading. JSON writes null for "the default".
class Config {
 public:
  explicit Config(yaml::Map& map) : map_(map) {}

  std::optional<yaml::Node> find(Keys keys) {
    for (const char* key : keys) {
      const auto node = map_.find(key);
      if (node && !node->is_null()) return node;
    }
    return std::nullopt;
  }
  std::int64_t size(Keys keys) {
    const auto node = find(keys);
    return node ? node->count(1) : map_.at(*keys.begin()).count(1);
  }
  std::int64_t size_or(Keys keys, std::int64_t fallback, std::int64_t least = 1) {
    const auto node = find(keys);
    return node ? node->count(least) : fallback;
  }
  bool flag_or(const char* key, bool fallback) {
    const auto node = find({key});
    return node ? node->flag() : fallback;
  }
  std::string text_or(const char* key, const char* fallback) {
    const auto node = find({key});
    return node ? node->text() : fallback;
  }
  /// A problem at the first of the keys that is there, else at the top of the file.
  void problem(Keys keys, const std::string& text) {
    const auto node = find(keys);
    (node ? *node : map_.node()).problem(text);
  }
  bool is_absent(const char* key) { return !map_.has(key); }

 private:
  yaml::Map& map_;
};

Activation activation_of(Config& config, const char* key, const char* fallback) {
  const std::string text = config.text_or(key, fallback);
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  if (has("gelu")) return Activation::gelu;
  if (has("relu")) return Activation::relu;
  if (has("silu") || has("swish") || has("swiglu")) return Activation::silu;
  config.problem({key}, fmt::format("is '{}'; one of: gelu, gelu_new, relu, silu", text));
  return Activation::gelu;
}

// Sizes of the families that share Llama's keys. A size of 1 may stand for a value that was
// reported already, so what does not divide is only said of larger ones.
void check_heads(Config& config, const Network& n, Keys heads_keys, bool has_own_head_dim) {
  if (!has_own_head_dim && n.hidden > 1 && n.hidden % n.heads != 0) {
    config.problem(heads_keys,
                   fmt::format("is {}, which does not divide the hidden size {}; change "
                               "one, or give head_dim",
                               n.heads, n.hidden));
  }
  if (n.kv_heads > 0 && n.heads > 1 && n.heads % n.kv_heads != 0) {
    config.problem({"num_key_value_heads"},
                   fmt::format("is {}, which does not divide the {} query heads; use a divisor",
                               n.kv_heads, n.heads));
  }
}

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

// Windows of Qwen hold only when switched on, and only from layer max_window_layers upwards.
void qwen_window(Config& config, Network& n) {
  if (!config.flag_or("use_sliding_window", false)) n.sliding_window = 0;
  if (n.sliding_window > 0 && config.size_or({"max_window_layers"}, 28, 0) > 0) {
    config.problem({"use_sliding_window"},
                   "switches the window on for some layers only; not supported, write false");
  }
}

Network read_qwen2(Config& config) {
  Network n = read_llama_like(config, {.kv_heads = 32, .sliding_window = 4096});
  n.has_attention_bias = true;
  qwen_window(config, n);
  return n;
}

Network read_qwen3(Config& config) {
  Network n = read_llama_like(config, {.kv_heads = 32, .head_dim = 128, .sliding_window = 4096});
  n.has_attention_bias = n.has_output_bias = config.flag_or("attention_bias", false);
  n.has_qk_norm = true;
  qwen_window(config, n);
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
  qwen_window(config, n);
  return n;
}

Network read_gemma(Config& config) {
  Network n = read_llama_like(
      config, {.kv_heads = 16, .head_dim = 256, .is_tied = true, .activation = "gelu"});
  n.has_attention_bias = n.has_output_bias = config.flag_or("attention_bias", false);
  return n;
}

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

struct FamilyReader {
  std::string_view name;
  Network (*read)(Config&);
};
constexpr std::array families = {
    FamilyReader{"llama", read_llama},       FamilyReader{"mistral", read_mistral},
    FamilyReader{"mixtral", read_mixtral},   FamilyReader{"qwen2", read_qwen2},
    FamilyReader{"qwen3", read_qwen3},       FamilyReader{"qwen3_moe", read_qwen3_moe},
    FamilyReader{"gemma", read_gemma},       FamilyReader{"opt", read_opt},
    FamilyReader{"gpt2", read_gpt2},         FamilyReader{"bloom", read_bloom},
    FamilyReader{"gpt_neox", read_gpt_neox}, FamilyReader{"t5", read_t5},
    FamilyReader{"bert", read_bert},         FamilyReader{"roberta", read_roberta},
};

const FamilyReader* family_of(yaml::Map& map) {
  std::array<std::string_view, families.size()> names;
  std::ranges::transform(families, names.begin(), &FamilyReader::name);
  if (!map.has("model_type")) {
    map.at("model_type");
    return nullptr;
  }
  const yaml::Node node = map.at("model_type");
  const std::size_t chosen = node.choice(names);
  return node.is_scalar() && names[chosen] == node.value().text ? &families[chosen] : nullptr;
}

// `architectures` names the class that the checkpoint was saved from, and with it the head.
void read_head(yaml::Map& map, Network& n) {
  const auto classes = map.find("architectures");
  if (!classes || classes->is_null()) return;
  const std::vector<yaml::Node> items = classes->items();
  if (items.empty()) return;
  const std::string name = items.front().text();
  const auto has = [&](const char* word) { return name.find(word) != std::string::npos; };
  if (n.family == Family::encoder && has("ForMaskedLM")) {
    n.head = Head::masked_language_model;
  } else if (has("Classification") || has("QuestionAnswering") || has("ForPreTraining") ||
             has("MultipleChoice") || has("NextSentence") || has("DoubleHeads")) {
    items.front().problem(
        fmt::format("is '{}', whose head is not supported; use the class with the "
                    "language-model head or the bare model",
                    name));
  }
}

}  // namespace

Network read_hugging_face(const std::string& path) {
  yaml::Document document(yaml::load_file(path));
  Network network;
  {
    yaml::Map map = document.root().map();
    map.ignore_rest();
    if (const FamilyReader* family = family_of(map)) {
      Config config(map);
      network = family->read(config);
      network.name = family->name;
      read_head(map, network);
      if (network.experts > 0 && network.experts_per_token > network.experts) {
        config.problem({"num_experts_per_tok"},
                       fmt::format("is {}, more than the {} experts there are",
                                   network.experts_per_token, network.experts));
      }
    }
  }
  document.finish();
  return network;
}

Workload workload_of(Network network) {
  Workload workload;
  workload.network = std::move(network);
  const std::int64_t context = workload.network.context;
  workload.sequence = context > 0 ? std::min<std::int64_t>(context, 2048) : 2048;
  return workload;
}

}  // namespace tidegate
