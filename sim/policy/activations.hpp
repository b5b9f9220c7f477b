#pragma once

#include <memory>

#include "sim/policy/policy.hpp"

/// The activation policies of the table: each maker reads its own keys.
namespace tidegate {

/// Everything saved for backward stays in GPU memory.
std::unique_ptr<ActivationPolicy> make_keep(yaml::Map& options);

/// `mode: full`       keeps every k-th layer's input (`every: k`) and runs the segment again;
/// `mode: selective`  keeps all but the attention core and runs that again.
std::unique_ptr<ActivationPolicy> make_recompute(yaml::Map& options);

/// Allocates, on every rank, the buffer that `layer` keeps for its backward; and frees it.
void keep_until_backward(Step& step, std::size_t layer, const char* owner, Bytes bytes,
                         std::vector<std::vector<Effect>>& effects);
void free_kept(Step& step, std::size_t layer, std::vector<std::vector<Effect>>& effects);

}  // namespace tidegate
