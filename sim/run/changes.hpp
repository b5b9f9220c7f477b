#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/yaml.hpp"
#include "sim/run/predict.hpp"

/// Changes of a scenario that may make room where a pool overflows.
namespace tidegate {

/// Keys to set, and what that means. Tokens per iteration and the network stay as they are.
struct Change {
  std::string what;  ///< without the ZeRO stage, which `sets` has
  std::vector<Override> sets;
  /// Of changes with the same word, the first that is accepted is meant; empty: this one.
  std::string instead_of = {};
};

/// Values of policy.activations for a policy of the table, to be tried in order until one is
/// accepted: alone, with a storage path, and with the host.
std::vector<std::string> activation_texts(std::string_view name, const Machine& machine);

/// What changes: "optimizer states and Adam on the host; ZeRO stage 2".
std::string describe(const Change& change);

/// Single changes for the pools of `p` that overflow and the owners of their bytes: smaller
/// micro-batches, other kernels, stages, buckets and buffers, and every policy of the table that
/// needs no more than a storage path. `values` and `scenario` are what `p` was predicted from.
/// Not all of them are accepted by load_scenario, help, or fit.
std::vector<Change> changes_for(const Prediction& p, const Scenario& scenario,
                                const yaml::Value& values);

/// Both changes in one; of two ZeRO stages the higher. Nothing when they set one key differently,
/// or one of them a part of what the other sets.
std::optional<Change> both(const Change& a, const Change& b);

}  // namespace tidegate
