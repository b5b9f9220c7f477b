#pragma once

#include <string>
#include <vector>

#include "sim/graph/workload.hpp"

/// Tiny decoders of different families.
namespace tidegate::tiny {

struct Case {
  std::string name;
  Workload workload;
};

/// Llama's: RMS norm, rotary positions, two query heads a key head, gated SiLU, no biases.
inline Workload llama(std::int64_t layers = 2) {
  Workload w;
  w.network = {.layers = layers,
               .hidden = 16,
               .ffn = 24,
               .heads = 4,
               .kv_heads = 2,
               .head_dim = 4,
               .vocabulary = 32,
               .has_gated_ffn = true,
               .activation = Activation::silu};
  w.sequence = 8;
  w.micro_batch = 2;
  w.dtype = DType::fp32;
  return w;
}

/// GPT-2's: layer norm, learned positions, biases everywhere, one qkv tensor, tied head.
inline Workload gpt2(std::int64_t layers = 2) {
  Workload w = llama(layers);
  Network& n = w.network;
  n.kv_heads = n.heads;
  n.max_positions = 8;
  n.has_gated_ffn = false;
  n.has_attention_bias = n.has_output_bias = n.has_ffn_bias = n.has_norm_bias = true;
  n.is_tied = n.has_fused_qkv = true;
  n.activation = Activation::gelu;
  n.norm = NormKind::layer_norm;
  n.positions = Positions::learned;
  return w;
}

inline std::vector<Case> all() {
  std::vector<Case> cases = {{"llama", llama()}, {"gpt2", gpt2()}};
  const auto add = [&](const char* name, Workload from) -> Workload& {
    return cases.emplace_back(name, std::move(from)).workload;
  };
  add("scores in memory, grouped heads", llama()).kernels.flash_attention = false;
  add("norm spelled out", llama()).kernels.fused_norm = false;
  add("norms of q and k", llama()).network.has_qk_norm = true;
  add("fused projections", llama()).network.has_fused_projections = true;
  add("sliding window", llama()).network.sliding_window = 3;
  add("half rotated", llama()).network.rotary_fraction = 0.5;
  add("Megatron's loss", gpt2()).kernels.parallel_cross_entropy = true;
  add("plain ReLU", gpt2()).network.activation = Activation::relu;
  add("gated ReLU with biases", llama()).network.activation = Activation::relu;
  cases.back().workload.network.has_ffn_bias = true;
  add("no last norm", llama()).network.has_final_norm = false;
  add("norm of the embedding", gpt2()).network.has_embedding_norm = true;
  return cases;
}

}  // namespace tidegate::tiny
