#include <array>

#include <fmt/core.h>

#include "sim/deepspeed/write.hpp"

namespace tidegate {
namespace {

struct Recompute {
  bool is_on = false, is_full = true;
  std::int64_t every = 1;
};

Recompute recompute_of(const yaml::Value& values) {
  const PolicyChoice choice = policy_choice(values, "activations", "keep");
  if (choice.name != "recompute") return {};
  yaml::Document document(choice.options);
  yaml::Map options = document.root().map();
  options.ignore_rest();
  return {true, options.text_or("mode", "full") == "full", options.count_or("every", 1, 1)};
}

// Megatron-LM cuts the blocks of a stage into runs of recompute-num-layers with method uniform and
// keeps the input of each, as recompute's `every` does (megatron/training/arguments.py).
// Megatron-DeepSpeed: the flags of the launch script of MLP-Offload's artifact.
void add_recompute(MegatronFlags& flags, const Recompute& recompute) {
  if (!recompute.is_on) return;
  if (!recompute.is_full) {
    flags.megatron_lm.emplace_back("--recompute-granularity selective");
    flags.megatron_deepspeed.emplace_back("--recompute-granularity selective");
    return;
  }
  flags.megatron_lm.emplace_back("--recompute-granularity full");
  flags.megatron_lm.emplace_back("--recompute-method uniform");
  flags.megatron_lm.push_back(fmt::format("--recompute-num-layers {}", recompute.every));
  flags.megatron_deepspeed.emplace_back("--checkpoint-activations");
  flags.megatron_deepspeed.emplace_back("--deepspeed-activation-checkpointing");
  if (recompute.every > 1)
    flags.megatron_deepspeed.push_back(fmt::format("--checkpoint-num-layers {}", recompute.every));
}

void add_layout(MegatronFlags& flags, const Workload& w) {
  auto& common = flags.common;
  common.push_back(fmt::format("--tensor-model-parallel-size {}", w.tensor_parallel));
  common.push_back(fmt::format("--pipeline-model-parallel-size {}", w.pipeline_parallel));
  if (w.sequence_parallel) common.emplace_back("--sequence-parallel");
  if (w.interleave == 1) return;
  const std::int64_t pieces = w.pipeline_parallel * w.interleave;
  if (w.network.layers > 0 && w.network.layers % pieces == 0) {
    common.push_back(
        fmt::format("--num-layers-per-virtual-pipeline-stage {}", w.network.layers / pieces));
  } else {
    add_remark(flags.remarks, {RemarkKind::left_out,
                               {},
                               "workload.interleave",
                               fmt::format("Megatron divides layers evenly, and {} pieces do not "
                                           "divide {}",
                                           pieces, w.network.layers)});
  }
}

}  // namespace

MegatronFlags megatron_flags(const yaml::Value& values, const Scenario& scenario,
                             const std::string& deepspeed_file) {
  MegatronFlags flags;
  const Workload& w = scenario.workload;
  const std::int64_t stage = scenario.policy.zero.stage;
  add_layout(flags, w);
  if (w.sequence > 0) flags.common.push_back(fmt::format("--seq-length {}", w.sequence));
  flags.common.push_back(fmt::format("--micro-batch-size {}", w.micro_batch));
  flags.common.push_back(fmt::format("--global-batch-size {}",
                                     w.micro_batch * w.accumulation * data_parallel_of(scenario)));
  if (w.dtype == DType::bf16) flags.common.emplace_back("--bf16");
  if (w.dtype == DType::fp16) flags.common.emplace_back("--fp16");
  add_recompute(flags, recompute_of(values));
  const bool is_resident = policy_choice(values, "optimizer", "resident").name == "resident" &&
                           policy_choice(values, "parameters", "resident").name == "resident";
  if (stage == 1) flags.megatron_lm.emplace_back("--use-distributed-optimizer");
  if (stage > 1 || !is_resident) {
    add_remark(flags.remarks, {RemarkKind::left_out,
                               {},
                               "policy",
                               "Megatron-LM has no flags for ZeRO 2 and 3 or for these places of "
                               "states: take Megatron-DeepSpeed"});
  }
  flags.megatron_deepspeed.emplace_back("--deepspeed");
  flags.megatron_deepspeed.push_back("--deepspeed_config " + deepspeed_file);
  flags.megatron_deepspeed.push_back(fmt::format("--zero-stage {}", stage));
  if (w.pipeline_parallel == 1) flags.megatron_deepspeed.emplace_back("--no-pipeline-parallel");
  if (!is_resident) flags.megatron_deepspeed.emplace_back("--cpu-optimizer");
  return flags;
}

}  // namespace tidegate
