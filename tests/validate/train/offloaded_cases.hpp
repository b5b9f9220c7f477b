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
    Case{"3", "resident", "{name: zero_infinity, path: nvme, sub_group_size: 500}", "keep"},
    Case{"3", "{name: nvme, path: nvme}", "{name: zero_infinity, path: nvme, sub_group_size: 500}",
         "keep"},
    Case{"3", "resident", "{name: mlp_offload, paths: [nvme, pfs], sub_group_size: 500}", "keep"},
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

}  // namespace tidegate::offloaded
