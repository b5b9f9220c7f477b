#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/work.hpp"

/// Asynchronous reads and writes of files: the one way in which Tidegate moves bytes to and from
/// storage, measuring and executing alike.
namespace tidegate::rig {

struct IoRequest {
  Direction direction = Direction::read;
  int descriptor = -1;
  std::int64_t offset = 0;
  std::span<std::byte> bytes;
  std::uint64_t tag = 0;  ///< comes back with the completion
};
/// Instants are nanoseconds of std::chrono::steady_clock; `completed` is when the engine saw it. A
/// short transfer is continued from where it stopped, so a completion is whole or has an error. A
/// read beyond the end of the file is ENODATA.
struct IoCompletion {
  std::uint64_t tag = 0;
  int error = 0;  ///< errno, or 0
  std::int64_t submitted = 0, completed = 0;
};

/// A fault put in on purpose, for tests: it strikes the `at`-th request (from 0) of a queue.
struct IoFault {
  enum class Kind : std::uint8_t {
    error,           ///< the request fails with `error`; nothing is moved
    short_transfer,  ///< the first half only at first (requests of two blocks of 4 KiB and more)
    delay,           ///< the completion comes later by `nanoseconds`
    corrupt          ///< one bit of what was read, or of what reaches the file, is wrong
  };
  std::int64_t at = 0;
  Kind kind = Kind::error;
  int error = 5;                 ///< errno of Kind::error; EIO is 5, ENOSPC 28
  std::int64_t nanoseconds = 0;  ///< of Kind::delay
};

/// A queue belongs to the thread that submits first; destroyed, it waits for what is under way.
class IoQueue {
 public:
  virtual ~IoQueue() = default;
  /// Starts a request; waits for a free place when `depth` are under way. Offsets, lengths and
  /// addresses are multiples of 4096 where the file is open for direct access.
  virtual void submit(const IoRequest& request) = 0;
  /// Waits until at least `least` requests that were in flight are over (all of them, when fewer
  /// are in flight); returns all that are.
  virtual std::vector<IoCompletion> reap(std::size_t least) = 0;
  /// Submitted and not yet returned by reap.
  virtual std::size_t in_flight() const = 0;
  /// "io_uring" or "threads"
  virtual const char* engine() const = 0;
  /// Why it is not io_uring, when that was wanted; empty otherwise.
  virtual const std::string& remark() const = 0;
};

enum class IoEngine : std::uint8_t { automatic, io_uring, threads };

struct IoOptions {
  std::size_t depth = 16;  ///< 1 to 1024
  IoEngine engine =
      IoEngine::automatic;  ///< automatic: io_uring, threads where the kernel refuses it
  std::vector<IoFault> faults;
};
/// Throws MachineError when the engine that was asked for by name is not to be had.
std::unique_ptr<IoQueue> make_io_queue(const IoOptions& options = {});

/// Reads or writes `bytes` at `offset` as blocks of `block`, `depth` of them under way, and waits
/// for all; the queue has nothing in flight before. Throws MachineError with path, offset and the
/// system's reason on the first that failed, when nothing is under way any more.
void transfer(IoQueue& queue, Direction direction, int descriptor, std::int64_t offset,
              std::span<std::byte> bytes, std::size_t block);

/// What the system calls the file behind a descriptor, for messages; "/folder/#1 (deleted)" for a
/// file without a name.
std::string path_of(int descriptor);

}  // namespace tidegate::rig
