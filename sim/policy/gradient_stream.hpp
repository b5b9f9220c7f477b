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
void send_to_host(Step& step, std::uint16_t rank, const Bucket& bucket, double elements,
                  const Shards& shards, TaskId reduced);

/// Pinned host bytes of the 16-bit slices of all tensors of the rank, one allocation each.
Bytes pinned_gradients(const Step& step, std::uint16_t rank);

}  // namespace tidegate
