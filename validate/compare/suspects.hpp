#pragma once

#include <span>
#include <vector>

#include "sim/report/critical_path.hpp"
#include "validate/compare/comparison.hpp"

namespace tidegate {

/// The devices that explain a difference; `path` is the measured critical path of `iterations`.
std::vector<Suspect> find_suspects(const Plan& plan, const Timeline& predicted,
                                   const Timeline& measured, std::span<const Demand> demands,
                                   std::span<const Resource> resources,
                                   std::span<const Instant> lateness,
                                   std::span<const PathSegment> path, double iterations);

}  // namespace tidegate
