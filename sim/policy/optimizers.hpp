#pragma once

#include <memory>

#include "sim/policy/policy.hpp"

/// The optimizer policies of the table: each maker reads its own keys.
namespace tidegate {

/// Adam and its states on the GPU.
std::unique_ptr<OptimizerPolicy> make_resident_optimizer(yaml::Map& options,
                                                         const Machine& machine);
/// States and Adam on the host (DeepSpeed offload_optimizer: cpu), optionally one step late.
std::unique_ptr<OptimizerPolicy> make_zero_offload(yaml::Map& options, const Machine& machine);
/// ZeRO-Offload++: a share of the states is updated on the host, the rest on the GPU at the same
/// time.
std::unique_ptr<OptimizerPolicy> make_twin_flow(yaml::Map& options, const Machine& machine);
/// States on one storage path, Adam on the host (DeepSpeed offload_optimizer: nvme).
std::unique_ptr<OptimizerPolicy> make_zero_infinity(yaml::Map& options, const Machine& machine);
/// States over several storage paths with the four principles of MLP-Offload as switches.
std::unique_ptr<OptimizerPolicy> make_mlp_offload(yaml::Map& options, const Machine& machine);

}  // namespace tidegate
