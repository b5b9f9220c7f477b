#pragma once

#include <cstdint>
#include <vector>

#include "sim/offload/trace.hpp"

/// What a planner decides about each tensor, and what it expects of that.
namespace tidegate {

/// Rates of one GPU's way out and memory that may be used; all rates finite and positive.
///
/// `host` is the link between GPU and host memory, each direction on its own. Traffic to storage
/// takes the drives and the link, whether it lands in a host buffer or not: the drives' rate then
/// bounds it, and the link is taken in proportion (platformxlab/G10, src/analysis.cc, books both
/// the same way). Reads and writes of the drives do not slow each other here, which is what the
/// published planners assume and drives do not do.
struct Rates {
  BytesPerSecond out_host, in_host;
  BytesPerSecond out_storage, in_storage;
  Seconds latency_host, latency_storage;  ///< from request to the first byte
  Bytes gpu_capacity, host_capacity;
};

struct Move {
  enum class What : std::uint8_t { keep, offload, recompute };
  enum class Where : std::uint8_t { host, storage };

  std::size_t tensor = 0;
  What what = What::keep;
  Where where = Where::host;  ///< of an offloaded tensor
  // Time points. A tensor that leaves may go when `out_after` has run and is predicted to be gone
  // when `out_by` has; it takes memory again from the start of `in_at`, when its fetch may begin,
  // and must be there at the start of `in_before`. A recomputed one is dropped after `out_after` =
  // `out_by` and made again at the start of `in_at` = `in_before`.
  std::size_t out_after = 0, out_by = 0;
  std::size_t in_at = 0, in_before = 0;
};

struct Forecast {
  Bytes gpu_peak;
  std::size_t peak_point = 0;  ///< the first point with the peak
  Bytes host_peak;
  bool fits = false;  ///< both memories
  /// Waiting for transfers, and running operators again: added to the time of the profiling
  /// iteration.
  Seconds exposed, recompute;

  bool is_hidden() const { return exposed.value() == 0; }
};

struct MovePlan {
  std::vector<Move> moves;  ///< one per tensor, moves[i].tensor == i
  Forecast forecast;
};

/// All tensors kept: where every planner begins.
std::vector<Move> keep_all(const TensorTrace& trace);

/// Turns a kept tensor into one that leaves after its last forward use and is back at its first
/// backward use; the fetch begins there too until a planner says earlier.
void offload(const TensorTrace& trace, Move& move, Move::Where where);

/// Bytes of GPU memory at each point, [2n]: standing + transient + the saved tensors there.
///
/// A tensor that moves is there until the end of `out_by` and from `in_at` on. While tensors are
/// made again at a point, the transients of their operators' forwards count at that point.
std::vector<Bytes> memory_curve(const TensorTrace& trace, const std::vector<Move>& moves);

/// Bytes of host memory that the moves fill at the turn from forward to backward, when every
/// offloaded tensor is away: its peak.
Bytes host_bytes(const TensorTrace& trace, const std::vector<Move>& moves);

/// Time of all operators that run again.
Seconds recompute_time(const TensorTrace& trace, const std::vector<Move>& moves);

/// Peaks and fit of `moves` with waits of `exposed`.
Forecast forecast(const TensorTrace& trace, const Rates& rates, const std::vector<Move>& moves,
                  Seconds exposed);

}  // namespace tidegate
