#include "sim/deepspeed/write.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/deepspeed/read.hpp"
#include "sim/policy/swapped_optimizer.hpp"
#include "sim/policy/zero_offload.hpp"

namespace tidegate {
namespace {

using Json = nlohmann::ordered_json;

struct Writing {
  const Scenario& scenario;
  Json zero = Json::object(), aio = Json::object();
  std::vector<Remark> remarks;

  void remark(RemarkKind kind, const std::string& key, const std::string& text) {
    add_remark(remarks, {kind, {}, key, text});
  }
  void leave_out(const std::string& key, const std::string& text) {
    remark(RemarkKind::left_out, key, text);
  }
};

// Stands for a path of the profile, which has no directories.
std::string directory_for(Writing& writing, const std::string& path, bool is_locked) {
  const std::string directory = (is_locked ? "/mnt/vast/" : "/mnt/") + path;
  writing.remark(
      RemarkKind::filled, "nvme_path",
      fmt::format("{} stands for the storage path {}: write its directory{}", directory, path,
                  is_locked ? ", with vast in its name, or the fork does not lock it" : ""));
  return directory;
}

const std::string& name_of_path(const Writing& writing, std::size_t index) {
  return writing.scenario.machine.paths()[index].name;
}

void add_zero(Writing& writing) {
  const ZeroOptions& zero = writing.scenario.policy.zero;
  Json& json = writing.zero;
  json["stage"] = zero.stage;
  if (zero.stage == 0) return;
  json["reduce_bucket_size"] = zero.reduce_bucket;
  json["reduce_scatter"] = zero.reduce_scatter;
  json["overlap_comm"] = true;
  if (zero.stage == 3) {
    json["stage3_prefetch_bucket_size"] = zero.prefetch_bucket;
    json["stage3_param_persistence_threshold"] = zero.persistence_threshold;
    json["stage3_max_live_parameters"] = zero.max_live;
    json["stage3_max_reuse_distance"] = zero.max_reuse_distance;
  }
  if (zero.contiguous_gradients) {
    writing.leave_out("policy.zero.contiguous_gradients",
                      "is Megatron's buffer; DeepSpeed's key of that name is another");
  }
}

// Zero-Offload and Twin-Flow.
void add_host_optimizer(Writing& writing, const ZeroOffloadOptions& options) {
  const std::int64_t stage = writing.scenario.policy.zero.stage;
  Json json = {{"device", "cpu"}, {"pin_memory", options.is_pinned}};
  if (options.host_share < 1 && stage == 3) json["ratio"] = options.host_share;
  if (options.host_share < 1 && stage < 3) {
    writing.leave_out(
        "policy.optimizer.ratio",
        fmt::format("DeepSpeed divides the optimizer at stage 3 only; at stage {} all "
                    "of it is on the host",
                    stage));
  }
  if (options.is_delayed)
    writing.leave_out("policy.optimizer.delayed_update", "DeepSpeed updates before it goes on");
  if (stage == 3) writing.zero["sub_group_size"] = options.sub_group_size;
  writing.zero["offload_optimizer"] = std::move(json);
}

void add_swap(Writing& writing, const SwapOptions& options, Json json) {
  json["buffer_count"] = options.buffer_count;
  json["pin_memory"] = true;
  json["pipeline_read"] = options.is_read_pipelined;
  json["pipeline_write"] = options.is_write_pipelined;
  writing.zero["sub_group_size"] = options.sub_group_size;
  writing.zero["offload_optimizer"] = std::move(json);
  // Later versions call the threads intra_op_parallelism; aio's unknown keys are never looked at.
  writing.aio = {{"block_size", std::llround(options.block.value())},
                 {"queue_depth", options.queue_depth},
                 {"thread_count", options.threads},
                 {"intra_op_parallelism", options.threads},
                 {"single_submit", false},
                 {"overlap_events", true}};
}

void add_infinity(Writing& writing, const SwapOptions& options) {
  const std::int64_t needed =
      swap_buffers_needed(options.is_read_pipelined, options.is_write_pipelined);
  if (options.buffer_count < needed) {
    writing.remark(RemarkKind::refused, "policy.optimizer.buffer_count",
                   fmt::format("is {}, and DeepSpeed's swapper stops with fewer than {}",
                               options.buffer_count, needed));
  }
  const std::string& path = name_of_path(writing, options.paths.front());
  add_swap(writing, options,
           {{"device", "nvme"}, {"nvme_path", directory_for(writing, path, false)}});
}

// Every how manieth sub-group goes to the second path, and which of the two that is: the fork has
// an integer for what may be any share here.
std::int64_t fork_ratio(Writing& writing, const SwapOptions& options,
                        std::vector<std::size_t>& order) {
  if (order.size() < 2) return 0;
  if (options.modulus > 0) return options.modulus;
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return options.shares[i]; });
  order.resize(2);
  const double all = std::accumulate(options.shares.begin(), options.shares.end(), 0.0);
  const double second = options.shares[order[1]] / all;
  if (second <= 0) {
    order.resize(1);
    return 0;
  }
  const std::int64_t ratio = std::max<std::int64_t>(2, std::llround(1 / second));
  writing.remark(RemarkKind::changed, "policy.optimizer.assignment",
                 fmt::format("the fork sends one sub-group in {} to {}, which is {:.3g} of them "
                             "and not {:.3g}",
                             ratio, name_of_path(writing, options.paths[order[1]]),
                             1 / static_cast<double>(ratio), second));
  return ratio;
}

void add_multi_path(Writing& writing, const SwapOptions& options) {
  std::vector<std::size_t> order(options.paths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() > 2)
    writing.leave_out("policy.optimizer.paths", "the fork has two at most: the two largest shares");
  const std::int64_t ratio = fork_ratio(writing, options, order);
  std::string directories;
  bool is_exclusive = false;
  for (const std::size_t i : order) {
    const bool is_locked = options.is_exclusive[i];
    is_exclusive = is_exclusive || is_locked;
    directories += (directories.empty() ? "" : ";") +
                   directory_for(writing, name_of_path(writing, options.paths[i]), is_locked);
  }
  if (!options.is_upload_async)
    writing.leave_out("policy.optimizer.async_upload", "the fork always uploads beside the update");
  writing.remark(RemarkKind::refused, "zero_optimization.offload_optimizer.dist_opt_…",
                 "keys of MLP-Offload's fork of DeepSpeed; DeepSpeed itself stops at them");
  add_swap(writing, options,
           {{"device", "nvme"},
            {"nvme_path", directories},
            {"dist_opt_enable_caching", options.is_cached ? 1 : 0},
            {"dist_opt_grad_skip", options.has_delayed_gradients ? 1 : 0},
            {"dist_opt_ratio", ratio},
            {"dist_opt_one_at_time", is_exclusive ? 1 : 0}});
}

void leave_out_resident(Writing& writing, yaml::Map& options) {
  if (options.text_or("algorithm", "adam") != "adam") {
    writing.leave_out("policy.optimizer.algorithm",
                      "write the optimizer section yourself, or give one to deepspeed.initialize");
  }
  if (const auto master = options.find("master_weights"); master && !master->flag()) {
    writing.leave_out("policy.optimizer.master_weights",
                      "DeepSpeed keeps an fp32 copy of 16-bit parameters");
  }
}

void add_optimizer(Writing& writing, const PolicyChoice& choice) {
  yaml::Document document(choice.options);
  yaml::Map options = document.root().map();
  options.ignore_rest();
  const Machine& machine = writing.scenario.machine;
  if (choice.name == "zero_offload") {
    add_host_optimizer(writing, read_zero_offload(options));
  } else if (choice.name == "twin_flow") {
    add_host_optimizer(writing, read_twin_flow(options));
  } else if (choice.name == "zero_infinity") {
    add_infinity(writing, read_zero_infinity(options, machine));
  } else if (choice.name == "mlp_offload") {
    add_multi_path(writing, read_mlp_offload(options, machine).value());
  } else {
    leave_out_resident(writing, options);
  }
}

// A buffer has to take a rank's part of the largest tensor (swap_tensor/
// partitioned_param_swapper.py, get_buffer, which in some versions wants one element more).
std::int64_t parameter_buffer(const Scenario& scenario) {
  constexpr std::int64_t usual = 100'000'000;
  std::int64_t largest = 0;
  for (const Parameter& p : parameters_in_order(build_graph(scenario.workload)))
    largest = std::max(largest, p.elements);
  return std::max(usual, largest / data_parallel_of(scenario) + 2);
}

void add_parameters(Writing& writing, const PolicyChoice& choice) {
  if (choice.name == "host") {
    writing.zero["offload_param"] = {{"device", "cpu"}, {"pin_memory", true}};
  } else if (choice.name == "nvme") {
    yaml::Document document(choice.options);
    yaml::Map options = document.root().map();
    options.ignore_rest();
    const std::string path = options.text("path");
    writing.zero["offload_param"] = {{"device", "nvme"},
                                     {"nvme_path", directory_for(writing, path, false)},
                                     {"buffer_count", options.count_or("buffer_count", 5, 1)},
                                     {"buffer_size", parameter_buffer(writing.scenario)},
                                     {"max_in_cpu", 0},
                                     {"pin_memory", true}};
  }
}

void leave_out_activations(Writing& writing, const PolicyChoice& choice) {
  if (choice.name == "keep") return;
  const std::string key = "policy.activations." + choice.name;
  if (choice.name == "recompute") {
    writing.leave_out(key,
                      "is the training script's: gradient_checkpointing of Hugging Face for mode "
                      "full, flags of Megatron (--megatron)");
    return;
  }
  std::string options;
  for (const yaml::Entry& entry : choice.options.entries) {
    if (entry.key != "name") options += (options.empty() ? ": " : ", ") + entry.key;
  }
  writing.leave_out(key, choice.name == "ssdtrain"
                             ? "DeepSpeed has no activations on drives; set in the training script "
                               "with SSDTrain's hooks (K-Wu/FlashTrain)" +
                                   options
                             : "no engine that reads a ds_config.json has this planner" + options);
}

// Settings of a scenario that are made elsewhere than in a ds_config.json.
void leave_out_rest(Writing& writing, const yaml::Value& values) {
  const yaml::Value* policy = values.find("policy");
  if (policy && policy->find("pinned_allocations")) {
    writing.leave_out("policy.pinned_allocations", "follows from the version of PyTorch");
  }
  const AllocatorOptions& allocator = writing.scenario.allocator;
  if (allocator.expandable_segments)
    writing.leave_out("memory.expandable_segments",
                      "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  if (const yaml::Value* memory = values.find("memory"); memory && memory->find("max_split_size"))
    writing.leave_out("memory.max_split_size", "set PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:…");
  if (values.find("loading")) writing.leave_out("loading", "is the training script's");
  const Workload& w = writing.scenario.workload;
  const yaml::Value* workload = values.find("workload");
  if (workload && workload->find("kernels"))
    writing.leave_out("workload.kernels", "are those of the training script");
  if (w.tensor_parallel * w.pipeline_parallel > 1)
    writing.leave_out("workload.tensor_parallel and pipeline_parallel",
                      "are the training script's (--megatron)");
  writing.leave_out("optimizer, scheduler, gradient_clipping",
                    "are yours to add; with offload DeepSpeed wants its own Adam (type AdamW)");
}

}  // namespace

DeepSpeedFile write_deepspeed(const yaml::Value& values, const Scenario& scenario) {
  Writing writing{.scenario = scenario, .remarks = {}};
  const Workload& w = scenario.workload;
  add_zero(writing);
  add_optimizer(writing, policy_choice(values, "optimizer", "resident"));
  add_parameters(writing, policy_choice(values, "parameters", "resident"));
  leave_out_activations(writing, policy_choice(values, "activations", "keep"));
  leave_out_rest(writing, values);
  Json json;
  json["train_batch_size"] = w.micro_batch * w.accumulation * data_parallel_of(scenario);
  json["train_micro_batch_size_per_gpu"] = w.micro_batch;
  json["gradient_accumulation_steps"] = w.accumulation;
  if (w.dtype == DType::bf16) json["bf16"] = {{"enabled", true}};
  if (w.dtype == DType::fp16) json["fp16"] = {{"enabled", true}};
  json["zero_optimization"] = std::move(writing.zero);
  if (!writing.aio.empty()) json["aio"] = std::move(writing.aio);
  return {json.dump(2) + "\n", std::move(writing.remarks)};
}

}  // namespace tidegate
