#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/graph/layer_graph.hpp"
#include "sim/plan/plan.hpp"
#include "sim/policy/gatherer.hpp"
#include "sim/policy/segments.hpp"

namespace tidegate {

/// What a plan asks of each segment again and again: the work of its kernels on a rank, and the
/// memory that it takes for a short while. Each is found once for all layers that differ by their
/// names alone, since a network repeats its blocks.
class SegmentTable {
 public:
  /// `graph` must outlive the table.
  SegmentTable(const LayerGraph& graph, std::uint16_t ranks);

  /// kernels_of a segment as a work of `plan`.
  WorkId kernels(PlanBuilder& plan, std::size_t layer, Pass pass, const Segment& segment,
                 std::uint16_t rank);

  struct ShortLived {
    Bytes workspace;              ///< largest transient_of the operators
    std::int64_t parameters = 0;  ///< elements of their parameters
  };
  /// Of operators [first, last].
  ShortLived short_lived(std::size_t layer, Pass pass, std::size_t first, std::size_t last);

 private:
  static constexpr std::size_t passes = 4;
  static constexpr std::size_t unknown = std::numeric_limits<std::size_t>::max();
  struct KnownKernels {
    std::size_t last = unknown;
    WorkId work{};
  };
  struct KnownMemory {
    std::size_t last = unknown;
    ShortLived memory;
  };

  /// By first operator and pass of what the layer is like.
  std::size_t place(std::size_t layer, Pass pass, std::size_t first) const {
    return (first_place_[layer] + first) * passes + static_cast<std::size_t>(pass);
  }

  const LayerGraph& graph_;
  std::size_t ranks_;
  std::vector<std::size_t> first_place_;  // by layer; equal where layers are alike
  std::vector<KnownMemory> memory_;       // by place
  std::vector<KnownKernels> kernels_;     // by place and rank
};

}  // namespace tidegate
