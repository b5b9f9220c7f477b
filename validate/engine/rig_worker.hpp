#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calib/rig/host_buffer.hpp"
#include "calib/rig/io_queue.hpp"
#include "sim/plan/plan.hpp"
#include "validate/engine/files.hpp"
#include "validate/engine/gpu_files.hpp"
#include "validate/engine/gpu_kit.hpp"
#include "validate/engine/memory.hpp"
#include "validate/engine/pacer.hpp"
#include "validate/engine/rig.hpp"
#include "validate/engine/worker.hpp"

/// Works on a rig: bytes that move, files, kernels; at full speed or paced.
namespace tidegate {

/// What a worker on a rig is part of.
struct RigUse {
  bool is_meant = false;  ///< somebody else does what tasks mean; tasks that mean nothing are done
  Memories::Sharing memory = Memories::Sharing::own;
};

class RigWorker : public Worker {
 public:
  /// Plan and rig must outlive the worker. Throws as run_on does.
  RigWorker(const Plan& plan, const Rig& rig, RigUse use = {});
  ~RigWorker() override;

  void sit_down(Seat seat) override;
  void allocate(BufferId buffer, TaskId task) override { memories_.allocate(buffer, task); }
  void free(BufferId buffer) override { memories_.free(buffer); }
  /// Of a buffer whose memory stays until free() (memory.hpp).
  void let_go(BufferId buffer) { memories_.let_go(buffer); }
  Clock::time_point run(TaskId task, Seat seat, Clock::time_point start) override;
  void stop() override { is_stopped_ = true; }

  /// Throws when another task has failed, and Interrupted on Ctrl-C: asked for between the parts of
  /// whatever takes long.
  void check_stop() const;
  /// The memory of a buffer that is allocated, empty in storage.
  std::span<std::byte> bytes_of(BufferId buffer) const { return memories_.bytes_of(buffer); }
  Files& files() { return files_; }
  /// What was done otherwise than predicted, as sentences (Execution).
  std::vector<std::string> remarks() const;
  /// The queue of a seat whose lane has works of files, else null.
  rig::IoQueue* queue_of(Seat seat) { return kits_[seat.number].queue.get(); }
  /// Writes whole pages to the place of `extent`, with their check values in it; reads `bytes` from
  /// page `first_page` of it on, and checks them unless the rig does not. The error says which task
  /// was at it.
  void store(TaskId task, const FileKey& key, rig::IoQueue& queue, Extent& extent,
             std::span<std::byte> bytes) const;
  void load(TaskId task, const FileKey& key, rig::IoQueue& queue, const Extent& extent,
            std::size_t first_page, std::span<std::byte> bytes) const;

 private:
  /// What a thread has for itself.
  struct Kit {
    rig::HostBuffer memory;
    GpuKit gpus;
    std::unique_ptr<rig::IoQueue> queue;
    std::uint64_t number = 0, written = 0;  ///< of the thread; file works so far
  };
  /// Does part k of n of a work.
  using Part = std::function<void(std::int64_t k, std::int64_t n)>;

  const Plan& plan_;
  const Rig& rig_;
  RigUse use_;
  Memories memories_;
  std::vector<std::string> apart_;  // GPUs that do not reach each other
  Files files_;
  GpuFiles gpu_files_;
  std::optional<Pacer> pacer_;
  std::vector<Kit> kits_;  // by seat
  int host_threads_;       // of Adam and casts; where GPUs are real, what a profile says of them
  std::atomic<bool> is_stopped_ = false;

  bool has_gpus() const { return !rig_.devices.empty(); }
  rig::IoOptions queue_options(LaneId lane) const;
  Clock::time_point run_paced(TaskId task, const Part& part, Clock::time_point start);
  void sleep_until(Clock::time_point when) const;
  bool is_done_elsewhere(TaskId task) const {
    return use_.is_meant && !plan_.meaning.of(task).empty();
  }
  Part part_of(TaskId task, Kit& kit, Clock::time_point start);
  Part computing(TaskId task, const Compute& compute, Kit& kit) const;
  Part copying(TaskId task, const Copy& copy, Kit& kit) const;
  Part computing_on_gpu(TaskId task, const Compute& compute, Kit& kit) const;
  Part copying_by_gpu(TaskId task, const Copy& copy, Kit& kit) const;
  Part exchanging(TaskId task, const Collective& collective, Kit& kit) const;
  Part reading_to_gpu(TaskId task, const FileIo& io, Kit& kit);
  Part writing_from_gpu(TaskId task, const FileIo& io, Kit& kit);
  void move_directly(TaskId task, const FileIo& io, std::int64_t offset,
                     std::span<std::byte> memory);
  void at_gpus(TaskId task, std::span<const std::uint16_t> gpus,
               const std::function<void()>& call) const;
  std::shared_ptr<const Extent> newest(TaskId task);
  Part reading(TaskId task, const FileIo& io, Kit& kit);
  Part writing(TaskId task, const FileIo& io, Kit& kit);
  void transfer(TaskId task, const FileKey& key, Direction direction, rig::IoQueue& queue,
                std::int64_t offset, std::span<std::byte> bytes) const;
  void mark(Extent& extent, std::size_t first_page, std::span<std::byte> bytes, const Kit& kit,
            std::uint64_t number) const;
  std::size_t first_checked(std::size_t first_page) const;
  void check(TaskId task, const FileKey& key, const Extent& extent, std::size_t first_page,
             std::span<const std::byte> bytes) const;
  std::span<std::byte> buffer_of(TaskId task, Effect::Kind kind, Place place, Bytes bytes) const;
};

/// Asks the system to wake this thread when its time has come: without lumping timers together, and
/// before usual threads, where the user may ask for that. For threads that mostly sleep: all of a
/// paced rig, and the dispatcher and those that wait for files of a native one.
void wake_in_time();

}  // namespace tidegate
