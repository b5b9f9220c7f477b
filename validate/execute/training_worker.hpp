#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "validate/execute/content_files.hpp"
#include "validate/execute/shelves.hpp"

/// Training as the work of a plan's tasks: what a task means is done where its work is due, on
/// tensors that lie in the rig's arenas (or the GPU's memory, shelves.hpp) and files and nowhere
/// else. Works that mean nothing are done as on any rig.
///
/// A plan may free a buffer while a task still reads it, if nobody needs what the task makes of it
/// (a store that SSDTrain could not cancel any more). Its memory is then kept until the task is
/// over, beyond what the plan counts.
namespace tidegate {

class TrainingWorker : public Worker, private train::ByteStore {
 public:
  /// All of them outlive it; the plan carries its meaning. Throws as RigWorker does.
  TrainingWorker(const Plan& plan, const Rig& rig, const Workload& workload,
                 const LayerGraph& graph, const train::TrainingOptions& options,
                 Memories::Sharing sharing = Memories::Sharing::own);

  void sit_down(Seat seat) override { rig_.sit_down(seat); }
  void allocate(BufferId buffer, TaskId task) override;
  void free(BufferId buffer) override;
  void begin(TaskId task) override;
  void end(TaskId task) override;
  Clock::time_point run(TaskId task, Seat seat, Clock::time_point start) override;
  void pass(TaskId task) override;
  void stop() override { rig_.stop(); }

  /// From now on this process does the works of one rank; others set up what is theirs.
  void stand_for(std::uint16_t rank) { only_ = rank; }
  /// Is told of each buffer that has gone, when the last that reads from it is over.
  void tell_gone(std::function<void(BufferId)> when_gone) { when_gone_ = std::move(when_gone); }
  /// What lay in a buffer on a storage path is not needed any more; of a process that does not hear
  /// of buffers otherwise.
  void forget(BufferId buffer) { files_.free(buffer); }

  /// What the deeds done by this process have come to, and adding that of another one.
  std::vector<std::byte> results() const;
  void add_results(std::span<const std::byte> results);

  std::vector<double> losses() const { return arithmetic_.losses(); }
  train::State state() const { return arithmetic_.state(); }
  struct Moved {
    std::int64_t read = 0, written = 0;
  };
  /// Bytes of files.
  Moved moved() const;
  /// Bytes that found no room in their buffers (shelves.hpp).
  std::int64_t beside() const { return shelves_.beside(); }

 private:
  const Plan& plan_;
  RigWorker rig_;
  Shelves shelves_;
  ContentFiles files_;
  train::Arithmetic arithmetic_;
  std::optional<std::uint16_t> only_;
  std::vector<rig::HostBuffer> pages_;  // by seat, and of the dispatcher
  struct Use {
    std::uint32_t readers = 0;  // under way
    bool is_free = false;
  };
  std::vector<Use> uses_;  // by buffer
  std::function<void(BufferId)> when_gone_;
  Moved others_;  // of other processes

  bool holds(const Access&) const override { return true; }
  void put(TaskId task, const Access& at, std::span<const std::byte> bytes) override;
  std::optional<std::vector<std::byte>> get(TaskId task, const Access& at) override;
  void drop(const Access& at) override;
  bool is_in_files(const Access& at) const {
    return plan_.pools[index(at.pool)].place.tier == Tier::storage;
  }
  template <class Do>
  void each_read(TaskId task, Do&& act) const;
  void give_back(BufferId buffer);
  void perform(TaskId task, rig::IoQueue* queue, rig::HostBuffer& pages);
};

}  // namespace tidegate
