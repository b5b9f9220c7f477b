#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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

/// A content, and the buffer or the pool where a copy of it is.
using Place = std::pair<ContentId, std::uint64_t>;
inline Place place_of(const Access& a) {
  constexpr std::uint64_t of_pool = 1ULL << 32;
  return {a.content, a.buffer == Access::standing ? of_pool + index(a.pool) : index(a.buffer)};
}

/// Memory and files that contents lie in. `task` is the one that writes or reads.
class ByteStore {
 public:
  virtual ~ByteStore() = default;
  /// Whether this is the store of a place; the arithmetic keeps what lies elsewhere.
  virtual bool holds(const Access& at) const = 0;
  virtual void put(TaskId task, const Access& at, std::span<const std::byte> bytes) = 0;
  /// What was put there last; none when nothing was, or it is gone.
  virtual std::optional<std::vector<std::byte>> get(TaskId task, const Access& at) = 0;
  virtual void drop(const Access& at) = 0;
};

class Arithmetic {
 public:
  /// All of them outlive it. The plan carries its meaning, `graph` is the workload's. Of `options`
  /// its steps, ranks, update and how it reduces are the plan's. What `store` holds is there and
  /// nowhere else, in the type that the plan counts: parameters, their shards, gradients and sums
  /// in the network's, states and fp32 sums in 4 bytes each. What flows between operators stays
  /// here.
  Arithmetic(const Plan& plan, const Workload& workload, const LayerGraph& graph,
             const TrainingOptions& options, ByteStore* store = nullptr);

  /// The deeds of a task that is not skipped; with `only`, what stands at the start is made for
  /// that rank alone. From any thread; the plan orders those that touch the same contents. Throws
  /// std::logic_error where a content is missing.
  void run(TaskId task, std::optional<std::uint16_t> only = {});
  /// What lies in the buffer is gone, but for the store's, which knows.
  void free(BufferId buffer);

  /// By iteration, micro-step and data-parallel rank.
  std::vector<double> losses() const;
  /// The last parameters and moments, put together from all ranks.
  State state() const;

  /// What the deeds done here have come to, and adding that of another process.
  std::vector<std::byte> results() const;
  void add_results(std::span<const std::byte> results);

 private:
  using Shared = std::shared_ptr<const Cell>;
  struct Numbered {
    std::size_t layer, op, slot;
  };

  const Plan& plan_;
  const Workload& workload_;
  const LayerGraph& graph_;
  TrainingOptions options_;
  ByteStore* store_;
  State start_;
  std::vector<Numbered> tensors_;  // by number
  mutable std::mutex mutex_;
  std::map<Place, Shared> cells_;
  std::map<BufferId, std::vector<Place>> in_buffer_;
  std::map<ContentId, Shared> states_;  // what updates keep, the last written in memory
  bool has_shards_ = false;
  std::map<std::vector<std::int64_t>, double> losses_;

  /// What a deed has read, in its order: of alternatives the one that is there.
  struct Read {
    const Content* content;
    Shared cell;
  };
  std::vector<Read> reads(TaskId task, const Deed& deed) const;
  Shared at(TaskId task, const Access& access) const;
  void write(TaskId task, const Access& access, Cell cell);
  bool is_stored(const Access& access) const {
    return store_ != nullptr && plan_.meaning.content(access.content).kind != Content::Kind::flow &&
           store_->holds(access);
  }
  const Update& rule() const { return plan_.meaning.update; }
  std::uint16_t batch_of(std::uint16_t rank) const { return plan_.meaning.batches.at(rank); }
  bool is_state(const Content& content) const;
  std::int64_t width_of(const Content& content) const;
  std::vector<std::byte> packed(const Content& content, const Cell& cell) const;
  Cell unpacked(const Content& content, std::span<const std::byte> bytes) const;
  Cell initial(const Content& content) const;
  Batch batch(TaskId task, const Deed& deed, std::uint16_t rank) const;
  Site site(const Deed& deed, const Batch& batch) const;

  bool resume(const Deed& deed, const Batch& batch, Cell& cell) const;
  void perform(TaskId task, const Deed& deed);
  Cell made(const Deed& deed, const Content& content, std::span<const Read> inputs) const;
  void forward(TaskId task, const Deed& deed, std::span<const Read> inputs);
  void backward(TaskId task, const Deed& deed, std::span<const Read> inputs);
  void update(TaskId task, const Deed& deed, std::span<const Read> inputs);
};

}  // namespace tidegate::train
