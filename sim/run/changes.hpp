#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/base/yaml.hpp"
#include "sim/run/predict.hpp"

/// Changes of a scenario that may make room where a pool overflows.
namespace tidegate {

/// Keys to set, and what that means. Tokens per iteration and the network stay as they are.
struct Change {
  std::string what;  ///< without the ZeRO stage, which `sets` has
  std::vector<Override> sets;
};

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
