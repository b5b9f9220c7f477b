#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/graph/layer_graph.hpp"

namespace tidegate {

/// DeepSpeed's unit of optimizer swapping: consecutive parameter tensors of one rank's shard.
struct SubGroup {
  std::int64_t elements = 0;  ///< of this rank
};

/// Walks tensors in registration order, adds ceil(elements/world) of each and closes a sub-group as
/// soon as it holds `size` elements or more, so sub-groups overshoot. Source: sub-group counts and
/// largest sizes of the published logs follow this rule exactly (mauryaavinash95/MLP-Offload logs).
std::vector<SubGroup> pack_sub_groups(std::span<const Parameter> parameters, std::int64_t world,
                                      std::int64_t size);
std::int64_t largest(std::span<const SubGroup> groups);

/// Assigns sub-groups to paths.
///   modulo n: id mod n == 0 goes to path 1, the rest to path 0 (two paths; the released code)
///   shares:   each sub-group goes to the path that is furthest below its share of the parameters
std::vector<std::uint16_t> assign_modulo(std::size_t count, std::int64_t modulus);
std::vector<std::uint16_t> assign_shares(std::span<const SubGroup> groups,
                                         std::span<const double> shares);

}  // namespace tidegate
