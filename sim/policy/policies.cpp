#include "sim/policy/policy.hpp"

#include <array>

#include <fmt/core.h>

#include "sim/policy/activations.hpp"
#include "sim/policy/optimizers.hpp"
#include "sim/policy/parameters.hpp"
#include "sim/policy/planned_moves.hpp"

namespace tidegate {
namespace {

template <class Make>
struct Line {
  std::string_view name, help;
  Make make;
};

using MakeActivations = std::unique_ptr<ActivationPolicy> (*)(yaml::Map&, const Machine&);
using MakeParameters = std::unique_ptr<ParameterPolicy> (*)(yaml::Map&, const Machine&);
using MakeOptimizer = std::unique_ptr<OptimizerPolicy> (*)(yaml::Map&, const Machine&);

// The planners of planned_moves.hpp: one maker each.
constexpr std::array<std::string_view, 6> planner_names = {"swap_all", "flash_neuron", "g10",
                                                           "teraio",   "capuchin",     "lohan"};
template <std::size_t i>
constexpr Line<MakeActivations> planned(std::string_view help) {
  return {planner_names[i], help, [](yaml::Map& options, const Machine& machine) {
            return make_planned_moves(planner_names[i], options, machine);
          }};
}

constexpr std::array activation_lines = {
    Line<MakeActivations>{"keep", "keep everything saved for backward on the GPU", make_keep},
    Line<MakeActivations>{"recompute", "run (parts of) forward again: mode full|selective, every k",
                          make_recompute},
    Line<MakeActivations>{"ssdtrain", "tensor by tensor to NVMe or host memory and back",
                          make_ssdtrain},
    planned<0>("every tensor to NVMe or host memory, a layer ahead (vDNN)"),
    planned<1>("tensors in forward order to NVMe until the rest fits"),
    planned<2>("inactive intervals, booked bandwidth, NVMe or host memory"),
    planned<3>("as g10, NVMe first and host memory as relief"),
    planned<4>("to host memory where hidden, else recomputed"),
    planned<5>("swap or recompute: the slowest resource as fast as can be"),
};
constexpr std::array parameter_lines = {
    Line<MakeParameters>{"resident", "16-bit parameters on the GPU", make_resident_parameters},
    Line<MakeParameters>{"host", "shards in pinned host memory (ZeRO-3)", make_host_parameters},
    Line<MakeParameters>{"nvme", "shards in files on a storage path (ZeRO-3)",
                         make_nvme_parameters},
};
constexpr std::array optimizer_lines = {
    Line<MakeOptimizer>{"resident", "Adam and its states on the GPU", make_resident_optimizer},
    Line<MakeOptimizer>{"zero_offload", "states and Adam on the host", make_zero_offload},
    Line<MakeOptimizer>{"twin_flow", "a share of the states on the host, the rest on the GPU",
                        make_twin_flow},
    Line<MakeOptimizer>{"zero_infinity", "states on one storage path, Adam on the host",
                        make_zero_infinity},
    Line<MakeOptimizer>{"mlp_offload", "states over several storage paths, four switches",
                        make_mlp_offload},
};

template <class Lines>
std::size_t chosen(const Lines& lines, yaml::Map& options) {
  std::vector<std::string_view> names;
  for (const auto& line : lines) names.push_back(line.name);
  return options.choice_or("name", names, 0);
}

// A section is a name or a map with a name and the policy's own keys.
template <class Lines, class Build>
void read_section(yaml::Map& policy, const char* section, const Lines& lines, Build build) {
  static const yaml::Value none{.kind = yaml::Value::Kind::map};
  const auto node = policy.find(section);
  if (!node) {
    yaml::Map empty(yaml::Node(policy.node().document(), &none, section));
    return build(lines[0], empty);
  }
  if (!node->is_scalar()) {
    yaml::Map options = node->map();
    return build(lines[chosen(lines, options)], options);
  }
  std::vector<std::string_view> names;
  for (const auto& line : lines) names.push_back(line.name);
  const std::size_t choice = node->choice(names);
  yaml::Map empty(yaml::Node(policy.node().document(), &none, node->path()));
  build(lines[choice], empty);
}

ZeroOptions read_zero(yaml::Map& policy) {
  ZeroOptions zero;
  const auto node = policy.find("zero");
  if (!node) return zero;
  yaml::Map map = node->map();
  zero.stage = map.at("stage").count(0, 3);
  zero.reduce_bucket = map.count_or("reduce_bucket_size", zero.reduce_bucket, 1);
  zero.prefetch_bucket = map.count_or("prefetch_bucket_size", zero.prefetch_bucket);
  zero.max_reuse_distance = map.count_or("max_reuse_distance", zero.max_reuse_distance);
  zero.max_live = map.count_or("max_live_parameters", zero.max_live, 1);
  zero.persistence_threshold =
      map.count_or("param_persistence_threshold", zero.persistence_threshold);
  zero.reduce_scatter = map.flag_or("reduce_scatter", zero.reduce_scatter);
  zero.contiguous_gradients = map.flag_or("contiguous_gradients", zero.contiguous_gradients);
  return zero;
}

// Which optimizer and parameter policies need which stage; the engines refuse or ignore the rest.
void check_stage(yaml::Map& policy, const Policy& chosen_policy, std::string_view optimizer,
                 std::string_view parameters) {
  const std::int64_t stage = chosen_policy.zero.stage;
  const auto complain = [&](const char* section, std::string_view name, const char* need) {
    policy.at(section).problem(fmt::format("{} needs {}; zero.stage is {}", name, need, stage));
  };
  if (optimizer == "zero_infinity" || optimizer == "mlp_offload") {
    if (stage != 3) complain("optimizer", optimizer, "zero.stage 3");
  } else if (optimizer != "resident" && stage == 0) {
    complain("optimizer", optimizer, "zero.stage 1, 2 or 3");
  }
  if (parameters != "resident" && stage != 3) complain("parameters", parameters, "zero.stage 3");
}

}  // namespace

std::span<const PolicyEntry> policy_table() {
  static const std::vector<PolicyEntry> table = [] {
    std::vector<PolicyEntry> all;
    for (const auto& l : activation_lines) all.push_back({"activations", l.name, l.help});
    for (const auto& l : parameter_lines) all.push_back({"parameters", l.name, l.help});
    for (const auto& l : optimizer_lines) all.push_back({"optimizer", l.name, l.help});
    return all;
  }();
  return table;
}

bool Policy::stays_on_gpu() const {
  return activations->stays_on_gpu() && parameters->stays_on_gpu() && optimizer->stays_on_gpu();
}

std::string Policy::describe() const {
  return fmt::format("ZeRO-{}; {}; {}; {}", zero.stage, optimizer->describe(),
                     parameters->describe(), activations->describe());
}

Policy read_policy(const yaml::Node& node, const Machine& machine) {
  Policy policy;
  std::string_view optimizer, parameters;
  yaml::Map map = node.map();
  policy.zero = read_zero(map);
  constexpr std::array<std::string_view, 2> allocations = {"power_of_two", "exact"};
  policy.pins_powers_of_two = map.choice_or("pinned_allocations", allocations, 0) == 0;
  read_section(map, "activations", activation_lines, [&](const auto& line, yaml::Map& options) {
    policy.activations = line.make(options, machine);
  });
  read_section(map, "parameters", parameter_lines, [&](const auto& line, yaml::Map& options) {
    parameters = line.name;
    policy.parameters = line.make(options, machine);
  });
  read_section(map, "optimizer", optimizer_lines, [&](const auto& line, yaml::Map& options) {
    optimizer = line.name;
    policy.optimizer = line.make(options, machine);
  });
  check_stage(map, policy, optimizer, parameters);
  return policy;
}

}  // namespace tidegate
