#pragma once

#include <array>
#include <string>
#include <vector>

#include "tests/sim/policy/meaning.hpp"

/// Every policy whose plans carry their meaning, on a decoder of two blocks of width 16.
namespace tidegate::offloaded {

constexpr int steps = 20;

struct Case {
  const char* zero;
  const char* parameters;
  const char* optimizer;
  const char* activations;
};

inline std::vector<Override> overrides(const Case& c, int ranks, int accumulation,
                                       const char* dtype) {
  auto all = meant::small(ranks, accumulation);
  const auto set = [&](const char* key, const std::string& value) { all.emplace_back(key, value); };
  set("workload.network.layers", "2");
  set("workload.network.hidden", "16");
  set("workload.network.ffn", "24");
  set("workload.network.heads", "4");
  set("workload.network.kv_heads", "2");
  set("workload.network.vocabulary", "32");
  set("workload.sequence", "8");
  set("workload.micro_batch", "2");
  set("workload.dtype", dtype);
  set("policy.zero", std::string("{stage: ") + c.zero +
                         ", reduce_bucket_size: 1000, param_persistence_threshold: 100}");
  set("policy.parameters", c.parameters);
  set("policy.optimizer", c.optimizer);
  set("policy.activations", c.activations);
  set("iterations", std::to_string(steps));
  return all;
}

inline constexpr std::array states = {
    Case{"0", "resident", "resident", "keep"},
    Case{"1", "resident", "resident", "keep"},
    Case{"2", "resident", "resident", "keep"},
    Case{"3", "resident", "resident", "keep"},
    Case{"1", "resident", "zero_offload", "keep"},
    Case{"2", "resident", "zero_offload", "keep"},
    Case{"3", "resident", "{name: zero_offload, sub_group_size: 500}", "keep"},
    Case{"3", "host", "{name: zero_offload, sub_group_size: 500}", "keep"},
    Case{"3", "{name: nvme, path: nvme}", "{name: zero_offload, sub_group_size: 500}", "keep"},
    Case{"3", "resident", "{name: twin_flow, ratio: 0.5, sub_group_size: 500}", "keep"},
    Case{"1", "resident", "{name: twin_flow, ratio: 0.4}", "keep"},
    Case{"2", "resident", "{name: twin_flow, ratio: 0.7}", "keep"},
    Case{"1", "resident", "{name: zero_offload, delayed_update: true}", "keep"},
    Case{"2", "resident", "{name: zero_offload, delayed_update: true}", "keep"},
    Case{"3", "resident", "{name: zero_offload, sub_group_size: 500, delayed_update: true}",
         "keep"},
    Case{"3", "host", "{name: zero_offload, sub_group_size: 500, delayed_update: true}", "keep"},
    Case{"3", "{name: nvme, path: nvme}",
         "{name: zero_offload, sub_group_size: 500, delayed_update: true}", "keep"},
    Case{"0", "resident", "{name: resident, algorithm: sgd}", "keep"},
    Case{"2", "resident", "{name: resident, algorithm: sgd, master_weights: false}", "keep"},
    Case{"0", "resident", "{name: resident, master_weights: false}", "keep"},
    Case{"1", "resident", "{name: resident, master_weights: false}", "keep"},
    Case{"3", "resident", "{name: resident, master_weights: false}", "keep"},
    Case{"3", "resident", "{name: zero_infinity, path: nvme, sub_group_size: 500, buffer_count: 4}",
         "keep"},
    Case{"3", "{name: nvme, path: nvme}",
         "{name: zero_infinity, path: nvme, sub_group_size: 500, buffer_count: 4}", "keep"},
    Case{"3", "resident",
         "{name: mlp_offload, paths: [nvme, pfs], sub_group_size: 500, buffer_count: 4}", "keep"},
    Case{"3", "host",
         "{name: mlp_offload, paths: [nvme, pfs], assignment: {shares: [2, 1]}, cache: false, "
         "delayed_gradients: false, sub_group_size: 500}",
         "keep"},
};

inline constexpr std::array activations = {
    "{name: keep, by_operator: true}",
    "{name: recompute, mode: full}",
    "{name: recompute, mode: full, every: 2}",
    "{name: recompute, mode: full, by_operator: true}",
    "{name: recompute, mode: selective}",
    "{name: ssdtrain, threshold: 1, to: nvme, profile_iteration: 1}",
    "{name: ssdtrain, threshold: 1, to: nvme, gpudirect: false, profile_iteration: 1}",
    "{name: ssdtrain, threshold: 1, to: host, adaptive: false}",
    "{name: ssdtrain, threshold: 1, to: nvme, adaptive: false, record_first: false}",
    "{name: ssdtrain, threshold: 1, to: nvme, adaptive: false, forwarding: false}",
    "{name: ssdtrain, threshold: 1, to: nvme, adaptive: false, deduplicate: false}",
    "{name: ssdtrain, threshold: 1, to: nvme, adaptive: false, prefetch: false}",
    "{name: swap_all, to: nvme, threshold: 1}",
    "{name: swap_all, to: host, threshold: 1}",
    "{name: flash_neuron, to: nvme, threshold: 1}",
    "{name: g10, to: nvme, threshold: 1}",
    "{name: teraio, to: nvme, threshold: 1}",
};

/// The pipelines that a policy of activations knows, with their accumulation.
struct Pipelined {
  Case policy;
  int ranks;
  const char* interleave;
};
inline constexpr const char* stored =
    "{name: ssdtrain, threshold: 1, to: nvme, profile_iteration: 1}";
inline constexpr std::array pipelines = {
    Pipelined{{"0", "resident", "resident", "keep"}, 2, "1"},
    Pipelined{{"1", "resident", "resident", "{name: recompute, mode: full, every: 2}"}, 4, "1"},
    Pipelined{{"1", "resident", "zero_offload", "{name: recompute, mode: selective}"}, 4, "1"},
    Pipelined{{"1", "resident", "{name: zero_offload, delayed_update: true}", stored}, 4, "1"},
    Pipelined{{"0", "resident", "resident", stored}, 4, "2"},
};
inline std::vector<Override> overrides(const Pipelined& p) {
  auto all = overrides(p.policy, p.ranks, 4, "bf16");
  all.emplace_back("workload.network.layers", "4");
  all.emplace_back("workload.pipeline_parallel", "2");
  all.emplace_back("workload.interleave", p.interleave);
  return all;
}

/// Planners that make tensors again by single operators. Copies of 1 MB/s take longer than any
/// operator, so that nothing is swapped that can be made again.
inline std::vector<Override> again(const char* planner, const char* dtype, int ranks) {
  auto all = overrides({"0", "resident", "resident", planner}, ranks, 2, dtype);
  all.emplace_back("machine.gpus.d2h", "1 MB/s");
  all.emplace_back("machine.gpus.h2d", "1 MB/s");
  return all;
}
inline bool runs_again(const Plan& plan) {
  for (const Deed& deed : plan.meaning.deeds) {
    if (deed.verb == Deed::Verb::forward && plan.label(deed.task).starts_with("recompute"))
      return true;
  }
  return false;
}

}  // namespace tidegate::offloaded
