#pragma once

#include <cstdint>

#include "sim/policy/policy.hpp"

namespace tidegate {

/// The plan of `iterations` training iterations of one node under a policy:
///
///   per micro-step   forward over the layers, backward over them in reverse
///   per layer        gather (ZeRO 3) → compute; in backward also bucket, reduce, hand to the
///   optimizer per iteration    update on every rank, then the gather of updated parameters (ZeRO
///   1, 2)
///
/// How ZeRO 3 gathers ahead is said in gatherer.hpp.
Plan build_plan(const Setting& setting, Policy& policy, std::int32_t iterations);

/// What build_plan's result holds and does at least, at a fraction of its cost.
Outline outline(const Setting& setting, Policy& policy);

}  // namespace tidegate
