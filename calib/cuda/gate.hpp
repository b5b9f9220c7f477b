#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "calib/cuda/shim/handles.hpp"

/// Timing behind a gate: what a GPU does, without what it costs the host to ask for it.
///
///   stream:   hold ─ start ─ operation 1 … N ─ stop
///   host:     enqueues all of it, then sets the flag that `hold` waits for
///
/// `hold` is a kernel of one thread that reads a flag in pinned host memory. When it ends, all is
/// queued, so the operations follow one another as fast as the GPU takes them, and several streams,
/// of several GPUs, begin together (they read the same flag).
///
/// Hazards, and what is done about them:
///   - A call that waits for the GPU while the gate is shut waits for ever. Such are allocation and
///     freeing, copies of pageable memory, the first launch of a kernel (modules load lazily), and
///     a launch into a full queue. So operations are run once outside first, at most `most_queued`
///     are enqueued, and `hold` gives up after a timeout, which is reported as MachineError; the
///     time is then not used.
///   - An exception while the gate is shut would leave the GPU spinning: a guard opens it on every
///     way out, and then waits for the streams, because the flag must outlive the kernels.
///   - CUDA_DEVICE_MAX_CONNECTIONS=1, which some training frameworks want, puts all streams in one
///     queue: what should overlap would not. why_no_gate() says so beforehand, as of the next one.
///   - CUDA_LAUNCH_BLOCKING=1, or a debugger that runs kernels one by one, turns every launch into
///     such a wait.
///   - `hold` takes one multiprocessor's slot until it opens, never during the time measured.
namespace tidegate::cuda {

/// Launches that a stream surely queues; the limit of current drivers is about a thousand.
constexpr int most_queued = 256;

/// Empty when timing behind a gate can work in this environment.
std::string why_no_gate();

/// What one stream is to do: `operation(i)` enqueues the i-th of `count` on `stream`, with the
/// stream's GPU current.
struct Lane {
  const Stream* stream = nullptr;
  int count = 1;
  std::function<void(int)> operation;
};

struct GateOptions {
  Seconds timeout{5};
  std::function<void()> while_running;  ///< called once the gate is open, for instruments
};

/// Seconds that each lane took from its first operation to its last, all of them let go together.
std::vector<Seconds> time_behind_gate(std::span<const Lane> lanes, const GateOptions& options = {});

/// Seconds until the last of `measured` is over while all of `beside(count)` run from their
/// beginning to beyond their end: begins with `count` operations of the latter and doubles them
/// until they do. Throws MachineError when even most_queued of them are over too early.
Seconds time_covered(std::span<const Lane> measured,
                     const std::function<std::vector<Lane>(int count)>& beside, int count,
                     const GateOptions& options = {});

}  // namespace tidegate::cuda
