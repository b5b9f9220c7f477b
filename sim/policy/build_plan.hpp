#pragma once

#include <cstdint>

#include "sim/policy/policy.hpp"

namespace tidegate {

/// The plan of `iterations` training iterations of one node under a policy:
///
///   per micro-step   forward over the layers, backward over them in reverse
///   per layer        gather (ZeRO 3) → compute; in backward also bucket, reduce, hand to the optimizer
///   per iteration    update on every rank, then the gather of updated parameters (ZeRO 1, 2)
///
/// ZeRO 3 gathers ahead: layer L is requested once layer j has begun computing, where j is the last
/// layer before L unless those between hold fewer than prefetch_bucket elements, and no earlier than
/// the layers between leave less than max_live elements gathered. (DeepSpeed fetches sub-module by
/// sub-module, so the layer that is being gathered does not count whole against max_live.)
Plan build_plan(const Setting& setting, Policy& policy, std::int32_t iterations);

}  // namespace tidegate
