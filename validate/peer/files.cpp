#include <algorithm>
#include <array>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/deepspeed/write.hpp"
#include "validate/peer/peer.hpp"

namespace tidegate {
namespace {

using Json = nlohmann::ordered_json;

const char* text_of(Activation activation) {
  switch (activation) {
    case Activation::gelu:
      return "gelu";
    case Activation::relu:
      return "relu";
    case Activation::silu:
      return "silu";
  }
  return "";
}

const char* positions_of(const Network& n) {
  if (n.positions == Positions::rotary) return "rotary";
  return n.positions == Positions::learned ? "learned" : "none";
}

Json shape_of(const Network& n) {
  return {{"layers", n.layers},
          {"hidden", n.hidden},
          {"ffn", n.ffn},
          {"heads", n.heads},
          {"kv_heads", n.kv_heads},
          {"head_dim", n.head_dim},
          {"vocabulary", n.vocabulary},
          {"max_positions", n.positions == Positions::learned ? n.max_positions : 0},
          {"positions", positions_of(n)},
          {"rotary_fraction", n.rotary_fraction},
          {"norm", n.norm == NormKind::rms_norm ? "rms_norm" : "layer_norm"},
          {"norm_bias", n.has_norm_bias},
          {"final_norm", n.has_final_norm},
          {"activation", text_of(n.activation)},
          {"gated_ffn", n.has_gated_ffn},
          {"attention_bias", n.has_attention_bias},
          {"output_bias", n.has_output_bias},
          {"ffn_bias", n.has_ffn_bias},
          {"fused_projections", n.has_fused_projections},
          {"fused_qkv", n.has_fused_qkv},
          {"tied", n.is_tied}};
}

// What the exported file leaves to the person is known here: the folder, the optimizer, the timers.
Json config_of(const std::string& exported, const PeerOptions& options) {
  Json config = Json::parse(exported);
  Json& zero = config["zero_optimization"];
  for (const char* part : {"offload_optimizer", "offload_param"}) {
    if (zero.contains(part) && zero[part].contains("nvme_path"))
      zero[part]["nvme_path"] = options.swap;
  }
  config["optimizer"] = {{"type", "AdamW"}, {"params", {{"lr", 1e-4}}}};
  config["steps_per_print"] = 1;
  config["wall_clock_breakdown"] = true;
  return config;
}

bool is_settled(const Remark& r) {
  constexpr std::array<std::string_view, 3> settled = {
      "nvme_path", "optimizer, scheduler, gradient_clipping", "policy.activations.recompute"};
  return std::ranges::find(settled, r.key) != settled.end();
}

}  // namespace

PeerFiles peer_files(const yaml::Value& values, const Scenario& scenario,
                     const PeerOptions& options) {
  if (auto refusals = peer_refusals(values, scenario); !refusals.empty())
    throw InputError(std::move(refusals));
  DeepSpeedFile file = write_deepspeed(values, scenario);
  std::erase_if(file.remarks, is_settled);
  const Workload& w = scenario.workload;
  const Json json = {
      {"name", scenario.name},
      {"network", shape_of(w.network)},
      {"sequence", w.sequence},
      {"micro_batch", w.micro_batch},
      {"accumulation", w.accumulation},
      {"iterations", options.iterations},
      {"dtype", name_of(w.dtype)},
      {"recompute", policy_choice(values, "activations", "keep").name == "recompute"},
      {"parameters", parameters_of(w.network)}};
  return {.scenario = json.dump(2) + "\n",
          .config = config_of(file.json, options).dump(2) + "\n",
          .remarks = std::move(file.remarks)};
}

}  // namespace tidegate
