#include "sim/graph/workload.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/core.h>

#include "sim/graph/explicit_layers.hpp"
#include "sim/graph/hugging_face.hpp"

namespace tidegate {
namespace {

constexpr std::array<std::string_view, 3> families = {"decoder", "encoder", "encoder_decoder"};
constexpr std::array<std::string_view, 3> activations = {"gelu", "relu", "silu"};
constexpr std::array<std::string_view, 2> norms = {"layer_norm", "rms_norm"};
constexpr std::array<std::string_view, 5> positions = {"none", "learned", "rotary", "alibi",
                                                       "relative_bias"};
constexpr std::array<std::string_view, 3> heads = {"language_model", "masked_language_model",
                                                   "pooler"};
constexpr std::array<std::string_view, 4> registrations = {"execution", "norms_first", "norms_last",
                                                           "norms_after"};
constexpr std::array<std::string_view, 3> dtypes = {"fp32", "bf16", "fp16"};

template <class E>
E choice_or(yaml::Map& map, const char* key, std::span<const std::string_view> words, E fallback) {
  return static_cast<E>(map.choice_or(key, words, static_cast<std::size_t>(fallback)));
}

std::int64_t size(yaml::Map& map, const char* key) {
  return std::min(map.count(key, 1), largest_size);
}
std::int64_t size_or(yaml::Map& map, const char* key, std::int64_t fallback, std::int64_t least) {
  return std::min(map.count_or(key, fallback, least), largest_size);
}

void read_sizes(yaml::Map& map, Network& n) {
  n.family = choice_or(map, "family", families, Family::decoder);
  n.layers = size(map, "layers");
  n.hidden = size(map, "hidden");
  n.heads = size(map, "heads");
  n.vocabulary = size(map, "vocabulary");
  n.kv_heads = size_or(map, "kv_heads", n.heads, 1);
  n.ffn = size_or(map, "ffn", 4 * n.hidden, 1);
  if (n.family == Family::encoder_decoder) {
    n.encoder_layers = size_or(map, "encoder_layers", n.layers, 1);
  }
  // A size of 1 may stand for one that was reported already.
  if (!map.has("head_dim") && n.hidden > 1 && n.hidden % n.heads != 0) {
    map.at("heads").problem(
        fmt::format("is {}, which does not divide hidden {}; change one, or give "
                    "head_dim",
                    n.heads, n.hidden));
  }
  n.head_dim = size_or(map, "head_dim", std::max<std::int64_t>(n.hidden / n.heads, 1), 1);
  if (n.heads > 1 && n.heads % n.kv_heads != 0) {
    map.at("kv_heads")
        .problem(fmt::format("is {}, which does not divide the {} heads; use a divisor", n.kv_heads,
                             n.heads));
  }
}

void read_experts(yaml::Map& map, Network& n) {
  if (!map.has("experts")) return;
  n.experts = size(map, "experts");
  n.experts_per_token = size(map, "experts_per_token");
  if (n.experts_per_token > n.experts) {
    map.at("experts_per_token")
        .problem(fmt::format("is {}, more than the {} experts there are", n.experts_per_token,
                             n.experts));
  }
}

void read_positions(yaml::Map& map, Network& n) {
  n.positions = choice_or(map, "positions", positions, Positions::rotary);
  if (n.positions == Positions::learned) {
    n.context = n.max_positions = size(map, "max_positions");
  }
  if (n.positions == Positions::relative_bias) {
    n.relative_buckets = size_or(map, "relative_buckets", 32, 1);
  }
  n.rotary_fraction = map.fraction_or("rotary_fraction", 1);
  n.token_types = size_or(map, "token_types", 0, 0);
  n.sliding_window = size_or(map, "sliding_window", 0, 0);
}

void read_biases(yaml::Map& map, Network& n) {
  const auto node = map.find("biases");
  if (!node) return;
  if (!node->is_map()) {
    const bool has_bias = node->flag();
    n.has_attention_bias = n.has_output_bias = n.has_ffn_bias = n.has_norm_bias = has_bias;
    return;
  }
  yaml::Map biases = node->map();
  n.has_attention_bias = biases.flag_or("attention", false);
  n.has_output_bias = biases.flag_or("output", false);
  n.has_ffn_bias = biases.flag_or("ffn", false);
  n.has_norm_bias = biases.flag_or("norm", false);
}

void read_variants(yaml::Map& map, Network& n) {
  n.norm = choice_or(map, "norm", norms, NormKind::rms_norm);
  n.has_gated_ffn = map.flag_or("gated_ffn", false);
  n.activation = choice_or(map, "activation", activations,
                           n.has_gated_ffn ? Activation::silu : Activation::gelu);
  n.has_qk_norm = map.flag_or("qk_norm", false);
  n.has_embedding_norm = map.flag_or("embedding_norm", false);
  n.is_post_norm = map.flag_or("post_norm", false);
  n.has_final_norm = map.flag_or("final_norm", !n.is_post_norm);
  n.is_parallel_residual = map.flag_or("parallel_residual", false);
  n.is_tied = map.flag_or("tied", false);
  n.has_fused_projections = map.flag_or("fused_projections", false);
  n.has_fused_qkv = map.flag_or("fused_qkv", false);
  n.head = choice_or(map, "head", heads, Head::language_model);
  n.registration = choice_or(map, "registration", registrations, Registration::execution);
}

Network read_network(const yaml::Node& node) {
  Network n;
  yaml::Map map = node.map();
  n.name = map.text_or("name", "");
  read_sizes(map, n);
  read_experts(map, n);
  read_positions(map, n);
  read_biases(map, n);
  read_variants(map, n);
  if (const std::string excess = excess_of(n); !excess.empty()) node.problem(excess);
  return n;
}

// The file's problems join those of the scenario. False when it cannot be used.
bool read_config(const yaml::Node& node, const std::string& base, Network& network) {
  const std::string written = node.text();
  const std::filesystem::path path = std::filesystem::path(base) / written;
  if (!std::filesystem::is_regular_file(path)) {
    node.problem(fmt::format("'{}' is not a file; give a config.json relative to {}", written,
                             base.empty() ? "this file" : base));
    return false;
  }
  try {
    network = read_hugging_face(path.string());
  } catch (const InputError& error) {
    for (const Problem& p : error.problems()) node.document().problem(p.where, p.key, p.text);
    return false;
  }
  return true;
}

KernelOptions read_kernels(const yaml::Node& node) {
  KernelOptions k;
  yaml::Map map = node.map();
  k.flash_attention = map.flag_or("flash_attention", k.flash_attention);
  k.fused_norm = map.flag_or("fused_norm", k.fused_norm);
  k.fused_activation = map.flag_or("fused_activation", k.fused_activation);
  k.fused_cross_entropy = map.flag_or("fused_cross_entropy", k.fused_cross_entropy);
  k.parallel_cross_entropy = map.flag_or("parallel_cross_entropy", k.parallel_cross_entropy);
  k.half_cross_entropy = map.flag_or("half_cross_entropy", k.half_cross_entropy);
  if (k.parallel_cross_entropy && k.fused_cross_entropy) {
    map.at("parallel_cross_entropy").problem("and fused_cross_entropy are two losses; choose one");
  }
  if (k.half_cross_entropy && !k.parallel_cross_entropy) {
    map.at("half_cross_entropy").problem("needs parallel_cross_entropy; leave it out");
  }
  k.fused_residual = map.flag_or("fused_residual", k.fused_residual);
  k.attention_dropout = map.fraction_or("attention_dropout", k.attention_dropout);
  k.hidden_dropout = map.fraction_or("hidden_dropout", k.hidden_dropout);
  k.fp32_norm = map.flag_or("fp32_norm", k.fp32_norm);
  return k;
}

// Bounds keep products of two or three of these exact in 64 bits.
std::int64_t bounded(yaml::Map& map, const char* key, std::int64_t fallback, std::int64_t least,
                     std::int64_t most) {
  const auto node = map.find(key);
  return node ? node->count(least, most) : fallback;
}

void read_batch(yaml::Map& map, Workload& w, bool is_explicit) {
  constexpr std::int64_t longest = 10'000'000, largest = 1'000'000;
  if (!is_explicit && !map.has("sequence")) map.at("sequence");
  w.sequence = bounded(map, "sequence", 1, 1, longest);
  w.decoder_sequence = bounded(map, "decoder_sequence", 0, 0, longest);
  w.micro_batch = bounded(map, "micro_batch", 1, 1, largest);
  w.accumulation = bounded(map, "accumulation", 1, 1, largest);
  w.tensor_parallel = bounded(map, "tensor_parallel", 1, 1, largest);
  w.pipeline_parallel = bounded(map, "pipeline_parallel", 1, 1, largest);
  w.interleave = bounded(map, "interleave", 1, 1, largest);
  w.sequence_parallel = map.flag_or("sequence_parallel", false);
  w.dtype = choice_or(map, "dtype", dtypes, DType::bf16);
  if (const auto kernels = map.find("kernels")) w.kernels = read_kernels(*kernels);
}

// What tensor parallelism asks of a network's sizes.
void check_split(yaml::Map& map, const Workload& w) {
  const std::int64_t t = w.tensor_parallel;
  if (t <= 1) return;
  const Network& n = w.network;
  const yaml::Node node = map.at("tensor_parallel");
  const auto divides = [&](std::int64_t size, const char* what) {
    if (size % t == 0) return;
    node.problem(
        fmt::format("is {}, which does not divide the {} {}; use a divisor", t, size, what));
  };
  divides(n.heads, "heads");
  divides(n.ffn, "feed-forward width");
  // Fewer key-value heads than ranks: each is held by t / kv_heads ranks, as Megatron does.
  if (n.kv_heads % t != 0 && t % n.kv_heads != 0) {
    node.problem(fmt::format(
        "is {}; it must divide the {} key-value heads or be a multiple of them", t, n.kv_heads));
  }
  if (n.vocabulary % t != 0) {
    const std::int64_t unit = 128 * t;
    node.problem(
        fmt::format("is {}, which does not divide the vocabulary of {}; pad it (Megatron "
                    "pads to a multiple of 128 x {}: {})",
                    t, n.vocabulary, t, (n.vocabulary + unit - 1) / unit * unit));
  }
  if (w.sequence_parallel && w.sequence * w.micro_batch % t != 0) {
    node.problem(
        fmt::format("is {}, which does not divide the {} tokens of a micro-batch, as "
                    "sequence_parallel asks",
                    t, w.sequence * w.micro_batch));
  }
}

std::int64_t blocks_of(const std::vector<Layer>& layers) {
  return std::ranges::count_if(layers, [](const Layer& l) { return l.kind == LayerKind::block; });
}

// What a pipeline asks of the network and its batch.
void check_pipeline(yaml::Map& map, const Workload& w, std::int64_t blocks) {
  const std::int64_t p = w.pipeline_parallel, c = w.interleave;
  if (p == 1 && c > 1) {
    map.at("interleave").problem("needs pipeline_parallel of 2 or more; leave it out");
    return;
  }
  if (p * c > blocks) {
    map.at(p > blocks ? "pipeline_parallel" : "interleave")
        .problem(fmt::format("makes {} pieces of a network of {} blocks; use at most {} stages{}",
                             p * c, blocks, blocks, c > 1 ? " times pieces" : ""));
  }
  if (c > 1 && w.accumulation % p != 0) {
    map.at("interleave")
        .problem(fmt::format("takes micro-batches in groups of the {} stages, and accumulation is "
                             "{}; use a multiple",
                             p, w.accumulation));
  }
}

void check_sequence(yaml::Map& map, const Workload& w) {
  const Network& n = w.network;
  const auto real = [](std::int64_t count) { return static_cast<double>(count); };
  const double length = real(std::max(w.sequence, w.decoder_sequence));
  const double tokens = real(w.micro_batch) * length;
  const double width =
      real(std::max({n.hidden, n.ffn, n.vocabulary})) * real(std::max<std::int64_t>(n.experts, 1));
  if (tokens * std::max(width, length * real(n.heads)) > 1e18) {
    map.at("sequence")
        .problem("gives tensors of more than 1e18 elements; shorten it or micro_batch");
  }
  if (n.positions == Positions::learned && w.sequence > n.context) {
    map.at("sequence")
        .problem(fmt::format("is {}, but the table of positions has {} rows; use at "
                             "most that",
                             w.sequence, n.context));
  }
  if (w.decoder_sequence > 0 && n.family != Family::encoder_decoder) {
    map.at("decoder_sequence").problem("is only for an encoder-decoder; leave it out");
  }
  if (w.sequence_parallel && w.tensor_parallel == 1) {
    map.at("sequence_parallel").problem("needs tensor_parallel of 2 or more; leave it out");
  }
}

}  // namespace

Workload read_workload(const yaml::Node& node, const std::string& base) {
  Workload w;
  yaml::Map map = node.map();
  const auto name = map.find("name");
  const auto config = map.find("config"), network = map.find("network"),
             layers = map.find("layers");
  const int forms = (config ? 1 : 0) + (network ? 1 : 0) + (layers ? 1 : 0);
  if (forms != 1 && node.is_map()) {
    node.problem(fmt::format("has {} of config, network and layers; give exactly one",
                             forms == 0 ? "none" : "several"));
  }
  read_batch(map, w, layers.has_value());
  bool is_whole = forms == 1;
  if (config) is_whole &= read_config(*config, base, w.network);
  if (network) w.network = read_network(*network);
  if (layers) w.explicit_layers = read_layers(*layers, w.dtype);
  if (name) w.network.name = name->text();
  if (is_whole && !layers) {
    check_split(map, w);
    check_sequence(map, w);
    check_pipeline(map, w, w.network.layers + w.network.encoder_layers);
  }
  if (layers) check_pipeline(map, w, blocks_of(w.explicit_layers));
  return w;
}

}  // namespace tidegate
