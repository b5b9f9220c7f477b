#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "models/base/units.hpp"
#include "models/demand.hpp"

/// Demands reduced to what sharing needs.
///
/// Let x in (0, 1] be a flow's speed relative to running alone, and λ its fair level, rate /
/// weight. Then x = min(1, pull · λ) with pull = weight · alone / amount, and the flow takes
/// fraction · x of each resource. Flows with the same pull and the same fractions always run at the
/// same speed: they form one class, and the cost of sharing follows the number of classes, not of
/// flows. Values that differ by less than 2^-40 count as the same, since amount / alone is seldom
/// exact.
namespace tidegate {

struct FlowShare {
  double fraction = 0;
  std::uint32_t use = 0;  ///< 2 · resource + side
};
/// A fraction in units of 1 / full_load: sums of such loads never drift.
constexpr std::int64_t full_load = std::int64_t{1} << 44;
inline std::int64_t load_of(const FlowShare& share) {
  return static_cast<std::int64_t>(share.fraction * static_cast<double>(full_load) + 0.5);
}

struct FlowClass {
  double pull = 1;
  std::uint32_t first_share = 0;
  std::uint32_t share_count = 0;
};

/// What the tasks of one work do after their start: wait `latency`, then flow in a class, or, when
/// they use nothing, let time pass.
struct FlowKind {
  static constexpr std::uint32_t timer = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t flow_class = timer;
  Instant latency = 0;
};

struct FlowTable {
  std::vector<FlowShare> shares;
  std::vector<FlowClass> classes;
  std::vector<FlowKind> kinds;
  std::vector<std::uint32_t> kind;  ///< by work
  std::vector<double> alone;        ///< by work, ticks; of a timer: all its time, whole

  std::span<const FlowShare> used(const FlowClass& c) const {
    return {shares.data() + c.first_share, c.share_count};
  }
};

/// Throws std::logic_error on a demand that is not finite and positive, or that names a resource
/// beyond resource_count.
FlowTable classify(std::span<const Demand> demands, std::size_t resource_count);

}  // namespace tidegate
