#pragma once

#include <span>

/// Bytes per element of the memory streams.
///
/// A value of dram.* counts what the program asked for (`read + written`), as STREAM does
/// (McCalpin 1995). What the memory moved can be more: an ordinary store of a line that is not in a
/// cache first fetches it (write-allocate), a streaming store does not.
///
///   moved = value · (read + written + fetched) / (read + written)
///
/// The factor is an upper bound: recent CPUs leave some fetches out where whole lines are written.
namespace tidegate::calib {

struct Stream {
  const char* quantity;
  double read, written, fetched;
  double asked() const { return read + written; }
  double moved() const { return read + written + fetched; }
};

/// dram.read      x += a[i]               4 read
/// dram.write     a[i] = s                4 written, 4 fetched
/// dram.copy      a[i] = b[i]             4 read, 4 written, 4 fetched
/// dram.copy_streaming  the same          4 read, 4 written
/// dram.triad     a[i] = b[i] + s·c[i]    8 read, 4 written, 4 fetched
std::span<const Stream> streams();

}  // namespace tidegate::calib
