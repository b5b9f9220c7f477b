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
/// What stands on top of the stack: a projection to the vocabulary, BERT's masked-language head
/// (dense, activation, norm, projection with bias), or only a dense layer on the first token.
enum class Head : std::uint8_t { language_model, masked_language_model, pooler };
/// Where a framework registers the norms of a block: in execution order, all before or all behind
/// the projections, or each behind its own sublayer.
enum class Registration : std::uint8_t { execution, norms_first, norms_last, norms_after };

/// Shape of a transformer. Lengths in elements; the defaults are those of a dense decoder.
struct Network {
  std::string name;
  Family family = Family::decoder;
  std::int64_t layers = 0;          ///< decoder (or only) stack
  std::int64_t encoder_layers = 0;  ///< encoder stack of an encoder-decoder
  std::int64_t hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0, vocabulary = 0;
  std::int64_t max_positions = 0;  ///< rows of a learned position table (with any offset)
  std::int64_t context = 0;        ///< longest sequence that the network was made for; 0: unknown
  std::int64_t token_types = 0;
  std::int64_t experts = 0, experts_per_token = 0;  ///< 0: dense
  std::int64_t sliding_window = 0;                  ///< 0: full attention
  std::int64_t relative_buckets = 0;                ///< T5: one table of buckets × heads per stack
  bool has_gated_ffn = false;
  bool has_attention_bias = false;  ///< q, k, v
  bool has_output_bias = false;     ///< attention output projection
  bool has_ffn_bias = false;
  bool has_norm_bias = false;  ///< layer norm
  bool has_qk_norm = false;
  bool has_embedding_norm = false;
  bool has_final_norm = true;
  bool is_parallel_residual = false;
  bool is_tied = false;                ///< head shares the embedding
  bool has_fused_projections = false;  ///< Megatron layout: [kv] and [gate, up] are one tensor each
  bool has_fused_qkv = false;          ///< q, k and v are one tensor (GPT-2, BLOOM, GPT-NeoX)
  bool is_post_norm = false;   ///< norm behind the residual sum (BERT), not before the sublayer
  double rotary_fraction = 1;  ///< share of each head that is rotated
  Head head = Head::language_model;
  Registration registration = Registration::execution;
  Activation activation = Activation::gelu;
  NormKind norm = NormKind::rms_norm;
  Positions positions = Positions::rotary;
};

/// Exact number of parameters of the network: tied tensors once, experts all.
std::int64_t parameters_of(const Network& network);

/// What the framework's kernels save and how they run; defaults are today's.
struct KernelOptions {
  bool flash_attention = true;
  bool fused_norm = true;  ///< saves its input once, no fp32 copies
  /// Keeps only what enters the activation; backward computes its output, the input of the down
  /// projection, again.
  bool fused_activation = false;
  bool fused_cross_entropy = false;
  /// Megatron-LM's loss: exponentials take the place of the logits, and their gradient that of the
  /// exponentials; in fp32, or in the stream's type (`--fp16-lm-cross-entropy`).
  bool parallel_cross_entropy = false, half_cross_entropy = false;
  bool fused_residual = false;  ///< hidden dropout and residual sum are one kernel
  double attention_dropout = 0, hidden_dropout = 0;
  bool fp32_norm = false;  ///< norms keep fp32 inputs
};

struct Workload {
  Network network;
  std::int64_t sequence = 0;          ///< tokens per sequence
  std::int64_t decoder_sequence = 0;  ///< encoder-decoder only; 0: same as sequence
  std::int64_t micro_batch = 1;       ///< sequences per rank and micro-step
  std::int64_t accumulation = 1;      ///< micro-steps per iteration
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;  ///< stages
  std::int64_t interleave = 1;         ///< pieces of the network on each stage
  bool sequence_parallel = false;
  DType dtype = DType::bf16;
  KernelOptions kernels;
  /// Explicit layer list; when not empty it replaces the network's layers.
  std::vector<Layer> explicit_layers;
};

/// Network from a Hugging Face config.json, with the defaults of the transformers library: llama,
/// mistral, mixtral, qwen2, qwen3, qwen3_moe, gemma, opt, gpt2, bloom, gpt_neox, t5, bert, roberta.
/// Counted is the network with its language-model head; BERT and RoBERTa have the masked head when
/// `architectures` names …ForMaskedLM, and otherwise the pooler of the bare model. Throws
/// InputError with places: a missing or wrong size, heads that do not divide, a family that is not
/// known (the known are listed), a variant that changes the count (a classification head,
/// OPT-350m).
Network read_hugging_face(const std::string& path);

/// A network by itself: one sequence of min(context, 2048) tokens on one rank.
Workload workload_of(Network network);

/// The `workload:` section of a scenario.
///
///   name: TEXT                        optional
///   config: FILE                      a Hugging Face config.json, relative to `base` (a directory)
///   network: {…}                      or a shape, with the fields of Network as keys
///   layers: [{…}]                     or every layer with its kernels and tensors
///   sequence: 2048                    tokens; needed unless `layers`
///   decoder_sequence, micro_batch, accumulation, tensor_parallel, pipeline_parallel, interleave,
///   sequence_parallel
///   dtype: bf16 | fp16 | fp32
///   kernels: {flash_attention: true, …}     the fields of KernelOptions
///
/// `network` defaults: kv_heads = heads, head_dim = hidden / heads, ffn = 4 hidden, activation silu
/// when gated_ffn and gelu otherwise, no biases (`biases: true`, or a map of attention, output,
/// ffn, norm), untied, rotary, rms_norm.
///
/// A layer: {name, kind, after: [names], forward: [kernels], backward: [kernels], parameters,
/// saved, input, workspace}, or `operators:` with several {name, forward, …}. A kernel is one of
/// {gemm: {m, n, k, batch}}, {attention: {batch, heads, kv_heads, queries, keys, head_dim,
/// causal}}, {elementwise: {bytes, launches}}. Left out, `backward` is each GEMM's two gradient
/// GEMMs, the backward of each attention, and twice the bytes of each elementwise kernel. Layers
/// run in file order except where `after` demands another.
///
/// Problems go to the node's document; nothing is thrown for them.
Workload read_workload(const yaml::Node& node, const std::string& base);

/// Layers, operators and tensors of one rank and one micro-batch: embedding, blocks, and head with
/// loss; an encoder-decoder has encoder blocks, the encoder's last norm, and the decoder's own
/// embedding (without parameters) before the decoder blocks.
///
/// Without recomputation a GPT block with dropout and without flash attention saves
///   s·b·h·(10 + 24/t + 5·a·s/(h·t)) bytes, with sequence parallelism s·b·h/t·(34 + 5·a·s/h),
/// in 16 bits (Korthikanti et al. 2022, section 4). Per-row statistics of norms and attention
/// masks shared by all layers are neglected.
/// Mixture of experts: every expert gets the same number of tokens.
LayerGraph build_graph(const Workload& workload);

}  // namespace tidegate
