#pragma once

#include <cstdint>
#include <vector>

#include "models/work.hpp"

/// What stands for a kernel on a real GPU: products and streams with its FLOPs and bytes.
namespace tidegate {

/// Bytes of memory that a kernel reads and writes; what is read is never written, so that numbers
/// stay ordinary.
struct Room {
  std::int64_t read = 0, written = 0;
  /// Enough for both.
  Room with(const Room& other) const;
};
Room room_of(const Kernel& kernel);

/// Eager attention over `heads` heads at a time, `runs` times in all:
///   scores  [queries, keys] = q k'      each head
///   sums    [queries, dim] = scores v
struct EagerAttention {
  Gemm scores, sums;
  std::int64_t heads = 1, runs = 1;
};
/// The scores of `heads` heads take at most `most_scores` bytes, or are those of one. `runs` times
/// the FLOPs of one are those of the kernel as the model counts them, forward and backward; rounded
/// to whole runs where backward has an odd number of pieces.
EagerAttention eager(const Attention& attention);
constexpr std::int64_t most_scores = std::int64_t{256} << 20;

/// Numbers of elements of triads, which read two fp32 numbers and write one: for each launch of the
/// kernel its part of the bytes, in several triads where it is more than `most_triad` elements.
/// Multiples of 8, rounded up.
std::vector<std::int64_t> triads_of(const Elementwise& elementwise);
constexpr std::int64_t triad_bytes = 12;
constexpr std::int64_t most_triad = std::int64_t{16} << 20;

}  // namespace tidegate
