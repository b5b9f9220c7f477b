#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "sim/policy/policy.hpp"

/// Activation policies that plan once, from the trace of a profiling iteration in which everything
/// was kept (sim/offload/planners.hpp): swap_all, flash_neuron, g10, teraio, capuchin, lohan.
///
/// A plan does what the moves say at their time points: a tensor leaves when the kernels of
/// `out_after` have run, its fetch is queued when the kernels before `in_at` have, the kernels of
/// `in_before` wait for it on the GPU; a recomputed tensor is dropped and made again by its
/// operators' forward kernels. Every micro-batch does the same. What the planner expected and what
/// then happens differ where lanes serve whole tensors in turn, and where ranks share drives.
namespace tidegate {

struct PlannedPolicy {
  std::string_view name, help;
};
std::span<const PlannedPolicy> planned_policies();

/// Keys: those of read_transport (not for capuchin), and `threshold`, elements; smaller tensors
/// stay.
std::unique_ptr<ActivationPolicy> make_planned_moves(std::string_view name, yaml::Map& options,
                                                     const Machine& machine);

}  // namespace tidegate
