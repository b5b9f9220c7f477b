#include <string_view>

#include <fmt/core.h>

#include "sim/deepspeed/write.hpp"
#include "validate/peer/peer.hpp"

namespace tidegate {
namespace {

class Refusals {
 public:
  explicit Refusals(const yaml::Value& values) : values_(values) {}

  void add_if(bool is_refused, const std::string& section, const std::string& key,
              std::string text) {
    if (!is_refused) return;
    const yaml::Value* place = values_.find(section);
    const yaml::Value* inner = place && !key.empty() ? place->find(key) : nullptr;
    const Where where = inner ? inner->where : place ? place->where : values_.where;
    problems_.push_back({where, key.empty() ? section : section + "." + key, std::move(text)});
  }
  std::vector<Problem> take() { return std::move(problems_); }

 private:
  const yaml::Value& values_;
  std::vector<Problem> problems_;
};

void check_network(const Workload& w, Refusals& refusals) {
  const Network& n = w.network;
  const auto refuse = [&](bool is_refused, const char* key, std::string text) {
    refusals.add_if(is_refused, "workload", key, std::move(text));
  };
  refuse(!w.explicit_layers.empty(), "layers",
         "layers without a network: the script needs a shape; give network: or config:");
  if (!w.explicit_layers.empty()) return;
  refuse(n.family != Family::decoder, "network", "the script trains decoders only");
  refuse(n.experts > 0, "network", "the script has no mixture of experts");
  refuse(n.is_post_norm || n.is_parallel_residual || n.has_qk_norm || n.has_embedding_norm,
         "network",
         "the script's blocks have one norm before attention and one before the feed-forward");
  refuse(n.sliding_window > 0 && n.sliding_window < w.sequence, "network",
         "the script attends to the whole sequence");
  refuse(n.positions == Positions::alibi || n.positions == Positions::relative_bias, "network",
         "the script knows rotary, learned and no positions");
  refuse(n.head != Head::language_model, "network", "the script has a language-model head");
  refuse(n.hidden == 0 || n.layers == 0, "network", "has no blocks that the script could train");
}

void check_layout(const Scenario& scenario, Refusals& refusals) {
  const Workload& w = scenario.workload;
  refusals.add_if(w.tensor_parallel > 1, "workload", "tensor_parallel",
                  "is more than 1: the script is data-parallel; use Megatron-DeepSpeed and "
                  "tidegate validate log");
  refusals.add_if(w.pipeline_parallel > 1, "workload", "pipeline_parallel",
                  "is more than 1: the script is data-parallel; use Megatron-DeepSpeed and "
                  "tidegate validate log");
  refusals.add_if(scenario.machine.nodes() > 1, "hardware", "",
                  "has several nodes: the script runs on one; add --set machine.network.nodes=1");
  refusals.add_if(w.dtype == DType::fp8, "workload", "dtype", "is fp8: write bf16, fp16 or fp32");
}

void check_policy(const yaml::Value& values, Refusals& refusals) {
  const PolicyChoice activations = policy_choice(values, "activations", "keep");
  const bool is_recompute = activations.name == "recompute";
  const yaml::Value* mode = activations.options.find("mode");
  const yaml::Value* every = activations.options.find("every");
  refusals.add_if(activations.name != "keep" && !is_recompute, "policy", "activations",
                  fmt::format("{}: DeepSpeed keeps activations or recomputes them; add --set "
                              "policy.activations=keep",
                              activations.name));
  refusals.add_if(
      is_recompute && ((mode && mode->text != "full") || (every && every->text != "1")), "policy",
      "activations",
      "the script recomputes every block whole; add --set policy.activations=recompute");
  const PolicyChoice optimizer = policy_choice(values, "optimizer", "resident");
  refusals.add_if(
      optimizer.name == "mlp_offload", "policy", "optimizer",
      "mlp_offload is a fork of DeepSpeed, which refuses its keys; compare its log with "
      "tidegate validate log");
}

}  // namespace

std::vector<Problem> peer_refusals(const yaml::Value& values, const Scenario& scenario) {
  Refusals refusals(values);
  check_network(scenario.workload, refusals);
  check_layout(scenario, refusals);
  check_policy(values, refusals);
  return refusals.take();
}

}  // namespace tidegate
