#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "calib/storage/target.hpp"

/// One stream of reads or writes, a fixed number of blocks under way: what every storage row runs.
namespace tidegate::calib {

enum class Order : std::uint8_t { sequential, random };

/// Ends with the time, or with the bytes, whichever is first; what is under way then is waited for
/// and counted.
struct StreamPlan {
  Direction direction = Direction::read;
  std::int64_t block = std::int64_t{1} << 20;
  std::size_t depth = 16;
  std::size_t files = 1;
  Order order = Order::sequential;
  Seconds most_time{1e9};
  std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();
  BytesPerSecond rate;        ///< paced to it; 0: as fast as it goes
  bool flushes = false;       ///< fdatasync at the end belongs to the time
  bool verifies = true;       ///< what the last reads brought is compared with what was written
  bool forgets_cache = true;  ///< of buffered files before reading
  /// Of the memory that is read into and written from. A block in small pages is a list of pieces
  /// to the drive, in a huge one a single piece, which some drives move twice as fast.
  rig::HostBuffer::Pages pages = rig::HostBuffer::Pages::huge;
  /// Instead of the target's files: one that is written from its start, or read from `from` on and
  /// round and round, as far as `size`.
  const rig::ScratchFile* other = nullptr;
  std::int64_t size = 0, from = 0;
  /// Instead of keyed content, what is written: the caller's own bytes, for `depth` blocks.
  std::span<std::byte> own_bytes;
};

struct StreamResult {
  std::int64_t bytes = 0;
  Seconds elapsed;
  double cpu = 0;                 ///< seconds of this process meanwhile, all its threads
  std::int64_t wrong_blocks = 0;  ///< of 4 KiB, among those verified
  std::vector<double> latencies;  ///< seconds, in order of completion
  std::vector<double> at;         ///< seconds since the start, of each completion
  std::int64_t block = 0;
  double rate() const { return static_cast<double>(bytes) / elapsed.value(); }
  /// Bytes per second over `parts` equal parts of the time; empty with fewer than ten completions
  /// for each.
  std::vector<double> series(std::size_t parts) const;
};

/// Throws MachineError on the first transfer that failed and rig::Interrupted after a signal, both
/// when nothing is under way any more; InputError when the write budget is used up.
StreamResult stream(Target& target, const StreamPlan& plan);

/// Writes every byte of one of the target's files, and makes sure that they are on the drive.
void fill_file(Target& target, std::size_t file);

}  // namespace tidegate::calib
