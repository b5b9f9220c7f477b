#pragma once

#include "sim/policy/policy.hpp"

namespace tidegate {

struct ZeroOffloadOptions {
  double host_share = 1;  ///< of the parameters, updated on the host; the rest on the GPU
  std::int64_t sub_group_size =
      1'000'000'000;        ///< elements of a rank's shard per Adam call, stage 3
  bool is_delayed = false;  ///< the update runs beside the next iteration, one step late
  bool is_pinned = true;    ///< parameters and gradients in pinned memory
};

std::unique_ptr<OptimizerPolicy> zero_offload(const ZeroOffloadOptions& options);

/// The keys of `optimizer: zero_offload` and `optimizer: twin_flow`.
ZeroOffloadOptions read_zero_offload(yaml::Map& options);
ZeroOffloadOptions read_twin_flow(yaml::Map& options);

}  // namespace tidegate
