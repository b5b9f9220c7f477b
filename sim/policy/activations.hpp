#pragma once

#include <memory>

#include "sim/policy/policy.hpp"

/// The activation policies of the table: each maker reads its own keys.
namespace tidegate {

/// Everything saved for backward stays in GPU memory.
///
/// `by_operator: true`, here and of full recomputation: memory comes and goes with each operator,
/// as autograd has it. Else with each layer: fewer tasks, and a peak that counts all that backward
/// frees of a layer beside all that it makes.
std::unique_ptr<ActivationPolicy> make_keep(yaml::Map& options, const Machine& machine);

/// `mode: full`       keeps every k-th layer's input (`every: k`) and runs the segment again;
/// `mode: selective`  keeps all but the attention core and runs that again.
std::unique_ptr<ActivationPolicy> make_recompute(yaml::Map& options, const Machine& machine);

/// Tensors leave the GPU as they are saved and come back before backward (ssdtrain.hpp).
std::unique_ptr<ActivationPolicy> make_ssdtrain(yaml::Map& options, const Machine& machine);

/// The storages that a layer's operators save, each once; of the attention core alone, or of all
/// but the core.
enum class Part : std::uint8_t { all, core, outside_core };
std::vector<const SavedTensor*> storages_of(const Layer& layer, Part part);

/// Allocates, on every rank of the stage, the buffers that a micro-batch keeps of a layer for its
/// backward, beside those that it keeps already; and frees all of them.
void keep_until_backward(Step& step, const Visit& visit, const char* owner,
                         std::span<const SavedTensor* const> tensors, StageEffects& effects);
void keep_until_backward(Step& step, const Visit& visit, const char* owner, Bytes bytes,
                         StageEffects& effects);
void free_kept(Step& step, const Visit& visit, StageEffects& effects);

/// Whole visits of the kind, tensor by tensor: each operator allocates the storages that it is the
/// first to save, and in backward frees them. What the micro-batch kept of the layer before goes
/// with the first operator.
void keep_by_operator(Step& step, const char* name, const Visit& visit, const char* owner);
void free_by_operator(Step& step, const char* name, const Visit& visit);

/// The visits of a backward without recomputation.
std::vector<Visit> plain_backward(std::size_t first, std::size_t last);

}  // namespace tidegate
