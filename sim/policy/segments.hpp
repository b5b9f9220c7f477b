#pragma once

#include <cstddef>
#include <vector>

#include "models/base/units.hpp"
#include "models/work.hpp"
#include "sim/graph/layer_graph.hpp"
#include "sim/policy/gatherer.hpp"

/// How the operators of a visit are put together to tasks.
namespace tidegate {

/// Operators of a layer that run as one task, in the order of the pass.
struct Segment {
  std::size_t first = 0, last = 0;    ///< operators, first <= last
  bool begins = false, ends = false;  ///< first (last) segment of the visit
};

/// Where the tasks of a pass end: behind every operator, or only where a collective of the
/// tensor-parallel group stands between two operators, or never within the sub-module.
enum class Cut : std::uint8_t { whole, at_collectives, by_operator };

/// The segments of a sub-module in the order of the pass, backward from the last operator.
std::vector<Segment> segments_of(const Layer& layer, Pass pass, const SubModule& part, Cut cut);

/// The kernels that a pass runs of a segment, in its order.
std::vector<Kernel> kernels_of(const Layer& layer, Pass pass, const Segment& segment);
/// How many these are.
std::size_t count_kernels(const Layer& layer, Pass pass, const Segment& segment);

/// Short-lived memory of an operator's kernels in a pass.
Bytes transient_of(const Layer& layer, Pass pass, std::size_t op);

}  // namespace tidegate
