#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/memory/caching_allocator.hpp"
#include "sim/plan/plan.hpp"
#include "sim/report/period.hpp"
#include "sim/timeline/timeline.hpp"

/// The plan's allocations and frees of each GPU pool, played through PyTorch's caching allocator
/// (sim/memory/caching_allocator.hpp) in the order of moments.hpp.
///
/// A buffer comes from the stream that is current when it is allocated. Threads that nobody gives a
/// stream have the default one, kernels and the pools of I/O workers alike. Queues of copies have
/// streams of their own, and so have collectives: one for gathers and one for reductions, as in
/// DeepSpeed's ZeRO-3 with overlap_comm (the all-gather stream of partitioned_param_coordinator.py,
/// the reduce-and-partition stream of stage3.py). Blocks that other streams used come back when
/// those are done (record_stream): the end of the freeing task.
///
/// A real program allocates when its thread launches a kernel, here the buffer exists from the
/// kernel's start: the order within a stream is the same, between streams it may differ.
namespace tidegate {

/// Until the pool ran out of memory, if it did: the run would have ended there.
struct AllocatorHistory {
  struct Peaks {
    std::int64_t allocated = 0, reserved = 0;
  };
  /// The quantities of PyTorch's error message.
  struct OutOfMemory {
    Instant at = 0;
    TaskId task{};
    std::int64_t asked = 0, allocated = 0, reserved = 0;
    bool is_fragmentation = false;  ///< allocated and asked bytes together are within the capacity
    bool fits_expandable = false;   ///< the whole run does with expandable segments
  };
  /// `reserved` from the pool's change number `change` on, counted from 0.
  struct Step {
    std::size_t change = 0;
    Instant at = 0;
    std::int64_t reserved = 0;
  };

  Peaks run, first, steady;         ///< of all iterations, the first, the steady period
  std::int64_t unused_at_peak = 0;  ///< reserved less allocated when reserved was first highest
  bool grows = false;               ///< reserved rises in the steady period above all before
  std::int64_t device_allocations = 0, retries = 0;
  std::optional<OutOfMemory> out_of_memory;
  std::vector<Step> steps;
};

/// The stream that is current when `task` allocates; numbers that mean nothing else.
std::uint32_t stream_of(const Plan& plan, TaskId task);
/// A capacity as the allocator takes it: one without a bound is large.
std::int64_t whole_bytes(Bytes capacity);

/// By pool; none for pools that are not a GPU's.
std::vector<std::optional<AllocatorHistory>> allocator_histories(
    const Plan& plan, const Timeline& timeline, const std::vector<Iteration>& iterations,
    const AllocatorOptions& options);

}  // namespace tidegate
