#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// What benchmark files hold: bytes that neither compress nor repeat, and that can be told at once
/// from anything else.
///
///   block k of 4 KiB = block (k mod 256) of a random pattern of 1 MiB, its first 8 bytes replaced
///   by a hash of (seed, k)
///
/// so no two blocks are equal (deduplication finds none), compressors see noise in any window below
/// 1 MiB, and a block costs one store to make once the pattern lies in memory.
namespace tidegate::calib {

class Content {
 public:
  static constexpr std::size_t block = 4096, period = std::size_t{1} << 20;
  explicit Content(std::uint64_t seed);

  /// The bytes at `position`, a multiple of 4096; so is the size.
  void fill(std::span<std::byte> bytes, std::int64_t position) const;
  /// The same for memory that already holds the bytes of another position, equal modulo the period.
  void restamp(std::span<std::byte> bytes, std::int64_t position) const;
  /// Bytes that differ from what `fill` would put there: the number of blocks with any.
  std::int64_t wrong_blocks(std::span<const std::byte> bytes, std::int64_t position) const;

 private:
  std::uint64_t key(std::int64_t position) const;

  std::uint64_t seed_;
  std::vector<std::byte> pattern_;
};

/// SplitMix64 (Steele, Lea and Flood 2014): the next state's output.
std::uint64_t mixed(std::uint64_t state);

}  // namespace tidegate::calib
