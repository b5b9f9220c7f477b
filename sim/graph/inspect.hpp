#pragma once

#include <string>

#include "sim/graph/workload.hpp"

/// What a workload is made of, before any machine is chosen.
///
/// Both forms state, for one rank and one micro-batch: the exact number of parameters (all, and
/// used per token), FLOPs and saved bytes per token, each distinct layer with its largest tensors,
/// and what recomputation would save and cost. FLOPs are those of the kernels that run: fused
/// causal attention counts half of its score matrix, attention without fusion all of it. An
/// encoder-decoder counts its source tokens.
namespace tidegate {

/// Aligned text for people.
std::string inspect_text(const Workload& workload);
/// The same facts as one JSON object; names carry the unit (`saved_bytes`, `forward_flops`).
std::string inspect_json(const Workload& workload);

}  // namespace tidegate
