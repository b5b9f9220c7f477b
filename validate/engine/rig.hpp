#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "calib/rig/io_queue.hpp"
#include "calib/rig/readings.hpp"
#include "models/machine.hpp"
#include "sim/plan/plan.hpp"
#include "sim/timeline/timeline.hpp"
#include "validate/engine/device.hpp"

/// The real machine, held by our program, and the executor of plans on it.
namespace tidegate {

/// native  every work as fast as it goes
/// paced   every work for real as well, each device held to the speed that the profile states
///         (pacer.hpp), which has to be well below what the machine can do. Kernels of a GPU that
///         is not there are time that passes.
enum class Pace : std::uint8_t { native, paced };

/// A fault put in on purpose: it strikes requests of works of that path and direction, counted by
/// each thread.
struct FileFault {
  std::uint16_t path = 0;
  Direction direction = Direction::read;
  rig::IoFault fault;
};

struct Rig {
  Machine machine;  ///< what the plan was made for; its speeds when paced
  Pace pace = Pace::paced;
  std::vector<std::string> folders;  ///< by storage path of the machine
  bool checks_files = true;  ///< what is read is compared with what was written, page by page
  /// One page of so many is checked. All of them take CPU time beside every transfer, which a
  /// native rig would measure and no profile knows.
  std::int64_t pages_per_check = 1;
  std::vector<FileFault> faults;
  /// Real GPUs, of a native rig: their memory holds the buffers of their pools, they run kernels,
  /// copies and collectives, and Adam and casts of a rank have its part of all cores. Without any,
  /// host memory and one core stand for each.
  Devices devices;
};

/// A folder for each storage path of the machine: those that were asked for, in the order of the
/// paths, or the one for all. Throws InputError when there are too many.
std::vector<std::string> folders_of(const Machine& machine, const std::vector<std::string>& asked);

struct Execution {
  Timeline timeline;
  /// By task: how much later its end was than its work should have been over at the rig's speeds.
  /// The operating system's part of the measured time, which no device model explains.
  std::vector<Instant> lateness;
  /// What others did on this machine and its drives from the first task to the last.
  rig::Foreign foreign;
  /// What was done otherwise than the prediction takes it, as sentences.
  std::vector<std::string> remarks;
};

/// Runs a plan for real: threads, copies, files, locks and time.
///
/// Every lane is as many threads as its width. Every buffer takes its bytes from the arena of its
/// pool (memory.hpp); host memory stands for that of GPUs where the rig has none. Copies move bytes
/// from a buffer that the task frees, if it frees one that large in that memory, to one that it
/// allocates; otherwise from and to memory of the thread's own, which holds ordinary numbers. Files
/// are files (files.hpp), written over once before the first task. Adam and casts the kernels that
/// calibration measures, a collective the copies and sums of its ring in the memory of one process.
///
/// Real GPUs do collectives as teams (device_team.hpp), each tried beforehand, copy from one to
/// another, and move files straight to and from memory of the thread's own (direct_files.hpp).
/// Where a file cannot go straight it goes through pinned host memory, which the remarks tell.
///
/// Throws MachineError, naming pool and task, when a pool is full, naming path, offset and task
/// when a file fails or its bytes are not those that were written, naming task and GPU when one
/// fails, and when there is nothing that does collectives; InputError when the rig lacks a folder
/// or a GPU, has not all ranks of a collective, or cannot be paced. Then no thread is left, and no
/// file (scratch files have no name).
Execution run_on(const Rig& rig, const Plan& plan);
inline Timeline execute(const Plan& plan, const Rig& rig) { return run_on(rig, plan).timeline; }

}  // namespace tidegate
