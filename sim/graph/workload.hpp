#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/base/yaml.hpp"
#include "sim/graph/layer_graph.hpp"

/// A workload: a network's shape and how its batch is cut.
namespace tidegate {

enum class Activation : std::uint8_t { gelu, relu, silu };
enum class NormKind : std::uint8_t { layer_norm, rms_norm };
enum class Positions : std::uint8_t { none, learned, rotary, alibi, relative_bias };
enum class Family : std::uint8_t { decoder, encoder, encoder_decoder };

/// Shape of a transformer. Lengths in elements; the defaults are those of a dense decoder.
struct Network {
  std::string name;
  Family family = Family::decoder;
  std::int64_t layers = 0;           ///< decoder (or only) stack
  std::int64_t encoder_layers = 0;   ///< encoder stack of an encoder-decoder
  std::int64_t hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0, vocabulary = 0;
  std::int64_t max_positions = 0;    ///< rows of a learned position table (with any offset)
  std::int64_t token_types = 0;
  std::int64_t experts = 0, experts_per_token = 0;  ///< 0: dense
  std::int64_t sliding_window = 0;   ///< 0: full attention
  std::int64_t relative_buckets = 0; ///< T5: one table of buckets × heads per stack
  bool has_gated_ffn = false;
  bool has_attention_bias = false;   ///< q, k, v
  bool has_output_bias = false;      ///< attention output projection
  bool has_ffn_bias = false;
  bool has_norm_bias = false;        ///< layer norm
  bool has_qk_norm = false;
  bool has_embedding_norm = false;
  bool has_final_norm = true;
  bool is_parallel_residual = false;
  bool is_tied = false;              ///< head shares the embedding
  bool has_fused_projections = false;///< Megatron layout: [kv] and [gate, up] are one tensor each
  Activation activation = Activation::gelu;
  NormKind norm = NormKind::rms_norm;
  Positions positions = Positions::rotary;
};

/// Exact number of parameters of the network: tied tensors once, experts all.
std::int64_t parameters_of(const Network& network);

/// What the framework's kernels save and how they run; defaults are today's.
struct KernelOptions {
  bool flash_attention = true;
  bool fused_norm = true;         ///< saves its input once, no fp32 copies
  bool fused_activation = false;  ///< recomputes the activation from its input in backward
  bool fused_cross_entropy = false;
  double attention_dropout = 0, hidden_dropout = 0;
  bool fp32_norm = false;         ///< norms keep fp32 inputs
};

struct Workload {
  Network network;
  std::int64_t sequence = 0;          ///< tokens per sequence
  std::int64_t decoder_sequence = 0;  ///< encoder-decoder only; 0: same as sequence
  std::int64_t micro_batch = 1;       ///< sequences per rank and micro-step
  std::int64_t accumulation = 1;      ///< micro-steps per iteration
  std::int64_t tensor_parallel = 1;
  bool sequence_parallel = false;
  DType dtype = DType::bf16;
  KernelOptions kernels;
  /// Explicit layer list; when not empty it replaces the network's layers.
  std::vector<Layer> explicit_layers;
};

/// Network from a Hugging Face config.json. Unknown families are located errors that list the known.
Network read_hugging_face(const std::string& path);

/// The `workload:` section of a scenario: {config: FILE} or {network: {…}} or {layers: […]} with
/// sequence, micro_batch, accumulation, kernels. File paths are relative to `base` (a directory).
Workload read_workload(const yaml::Node& node, const std::string& base);

/// Layers, operators and tensors of one rank and one micro-batch.
LayerGraph build_graph(const Workload& workload);

}  // namespace tidegate
