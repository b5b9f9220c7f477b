#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "sim/plan/plan.hpp"
#include "validate/train/training.hpp"

/// Does what the tasks of a plan mean (sim/plan/meaning.hpp), on real tensors.
///
/// Whoever executes the plan calls run() where a task's work is done and free() where a buffer
/// goes; nothing else is asked for. A content is there from the deed that writes it to the free of
/// its buffer, so a plan that reads what is not there throws, and one that reads a wrong copy
/// trains another network than training without a plan does (training.hpp).
namespace tidegate::train {

/// A content at a place. Saved storages are the bytes of the graph; the others fp32.
struct Cell {
  std::vector<Values> values;  ///< moments have two
  std::vector<std::byte> bytes;
  Flow flow;
  Storages passing;  ///< of a flow: what its layer has saved so far in this pass
};

/// Files: what a plan keeps on storage paths. `task` is the one that writes or reads.
class ByteStore {
 public:
  virtual ~ByteStore() = default;
  virtual void put(TaskId task, PoolId path, ContentId content,
                   std::span<const std::byte> bytes) = 0;
  /// The bytes of the last put of that content.
  virtual std::vector<std::byte> get(TaskId task, PoolId path, ContentId content) = 0;
};

class Arithmetic {
 public:
  /// All of them outlive it. The plan carries its meaning, `graph` is the workload's. With `files`,
  /// contents on storage paths are there and nowhere else, in the type that the plan counts:
  /// parameters, their shards and sums in the network's, states and fp32 sums in 4 bytes each.
  Arithmetic(const Plan& plan, const Workload& workload, const LayerGraph& graph,
             const TrainingOptions& options, ByteStore* files = nullptr);

  /// The deeds of a task that is not skipped. From any thread; the plan orders those that touch the
  /// same contents. Throws std::logic_error where a content is missing.
  void run(TaskId task);
  /// What lies in the buffer is gone.
  void free(BufferId buffer);

  /// By iteration, micro-step and rank.
  std::vector<double> losses() const;
  /// The last fp32 parameters, put together from all ranks.
  NetworkTensors master() const;

 private:
  using Shared = std::shared_ptr<const Cell>;
  using Place = std::pair<ContentId, std::uint64_t>;
  struct Numbered {
    std::size_t layer, op, slot;
  };

  const Plan& plan_;
  const Workload& workload_;
  const LayerGraph& graph_;
  TrainingOptions options_;
  ByteStore* files_;
  NetworkTensors initial_;
  std::vector<Numbered> tensors_;  // by number
  mutable std::mutex mutex_;
  std::map<Place, Shared> cells_;
  std::map<BufferId, std::vector<Place>> in_buffer_;
  std::map<ContentId, Shared> masters_;  // the last written
  std::map<std::vector<std::int64_t>, double> losses_;

  /// What a deed has read, in its order: of alternatives the one that is there.
  struct Read {
    const Content* content;
    Shared cell;
  };
  std::vector<Read> reads(TaskId task, const Deed& deed) const;
  static Place place(const Access& access);
  void write(TaskId task, const Access& access, Cell cell);
  bool is_in_files(const Access& access) const {
    return files_ != nullptr && plan_.pools[index(access.pool)].place.tier == Tier::storage;
  }
  std::int64_t width_of(const Content& content) const;
  std::vector<std::byte> packed(const Content& content, const Cell& cell) const;
  Cell unpacked(const Content& content, std::span<const std::byte> bytes) const;
  const Values& initial(const Content& content) const;
  Batch batch(TaskId task, const Deed& deed, std::uint16_t rank) const;
  Site site(const Deed& deed, const Batch& batch) const;

  void perform(TaskId task, const Deed& deed);
  Cell made(const Deed& deed, const Content& content, std::span<const Read> inputs) const;
  void forward(TaskId task, const Deed& deed, std::span<const Read> inputs);
  void backward(TaskId task, const Deed& deed, std::span<const Read> inputs);
  void adam(TaskId task, const Deed& deed, std::span<const Read> inputs);
};

}  // namespace tidegate::train
