#pragma once

#include "sim/policy/policy.hpp"

/// What DeepSpeed's gradient stream does with a reduced bucket when the optimizer is not on the
/// GPU. `shards` are the slices of the bucket's tensors that go; of a fraction of them, the
/// elements are what travels.
namespace tidegate {

/// This rank's slices of the bucket's tensors, each rounded up.
Shards shards_of(const Step& step, const Bucket& bucket);

/// The 16-bit slice goes to pinned host memory and back, so that accumulation, norm and cast run on
/// the GPU (DeepSpeed stage 3, every micro-step). 2 + 2 bytes per element; returns the copy back.
TaskId round_trip(Step& step, std::uint16_t rank, const Bucket& bucket, double elements,
                  const Shards& shards, TaskId reduced);

/// The whole way of a bucket to fp32 gradients in host memory:
///   stage 3        16-bit round trip every micro-step, fp32 down at the boundary, thread blocked
///   stage 0 … 2    fp32 down at the boundary; before it, 16-bit down, and up again to accumulate
/// fp32 gradients land where the last ones were, which is `free_after` these tasks.
void send_to_host(Step& step, std::uint16_t rank, const Bucket& bucket, double elements,
                  const Shards& shards, TaskId reduced, std::span<const TaskId> free_after = {});

/// Copies of the above that no iteration spares, of `elements` of a rank's gradients, all of which
/// end with backward: the 16-bit way down and back, and the fp32 way down where that is the end.
enum class GradientsEnd { in_16_bits, on_host };
void add_least_gradients(const Step& step, std::uint16_t rank, double elements, GradientsEnd end,
                         LeastWork& least);

/// Pinned host bytes of the 16-bit slices of all tensors of the rank, one allocation each.
Bytes pinned_gradients(const Step& step, std::uint16_t rank);

}  // namespace tidegate
