#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/report/allocation.hpp"
#include "sim/report/period.hpp"
#include "sim/timeline/timeline.hpp"

namespace tidegate {

/// Who holds what of a GPU or host memory over the steady period, in few points.
///
/// The first point is the period's first moment. A pool that changes more often than there are
/// points is cut into slices of equally many changes, each told by its highest moment and its last,
/// so that no peak is lost.
struct MemorySeries {
  struct Owner {
    std::string name;
    std::vector<std::int64_t> bytes;  ///< by point
  };
  std::string pool;
  std::vector<Instant> at;             ///< ascending
  std::vector<std::int64_t> held;      ///< bytes of the plan's buffers
  std::vector<std::int64_t> reserved;  ///< GPUs only; its last value once it ran out of memory
  std::vector<Owner> owners;           ///< those that hold anything at some point
};

constexpr std::size_t most_series_points = 400;

/// `histories` by pool, as allocator_histories() gives them.
std::vector<MemorySeries> memory_series(const Plan& plan, const Timeline& timeline,
                                        const Steady& steady,
                                        std::span<const std::optional<AllocatorHistory>> histories,
                                        std::size_t most_points = most_series_points);

}  // namespace tidegate
