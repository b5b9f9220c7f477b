#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/yaml.hpp"
#include "models/machine.hpp"
#include "sim/policy/step.hpp"

/// How saved tensors travel between a GPU and the memory in which they wait for backward.
namespace tidegate {

struct TransportOptions {
  bool to_host = false;              ///< pinned host memory instead of files
  std::vector<std::uint16_t> paths;  ///< rank r uses paths[r mod n]
  bool is_direct = false;            ///< GPUDirect: no bounce buffer in host memory
  std::int64_t store_workers = 6, load_workers = 6;
  Bytes block = Bytes(16 << 20);
  std::int32_t queue_depth = 8;
};

/// Worker pools of each rank: a job moves one tensor, jobs start in the order in which they were
/// queued, and as many run at the same time as the pool has workers.
///
///   direct   one transfer between GPU memory and the file
///   bounce   through a pinned buffer of the worker: copy, then file (or the reverse)
///   host     one copy between GPU memory and pinned host memory
class Transport {
 public:
  explicit Transport(TransportOptions options) : options_(std::move(options)) {}

  const TransportOptions& options() const { return options_; }
  /// Begins a new plan. `waiting` bytes of each rank wait at the same time at most: files, or
  /// pinned host memory; `largest` is the largest tensor, for bounce buffers.
  /// `prefix` tells the lanes of several transports apart.
  void prepare(Step& step, std::span<const Bytes> waiting, Bytes largest,
               const std::string& prefix = "");

  struct Job {
    const char* name = "";
    std::uint16_t rank = 0;
    std::int32_t item = -1;
    Bytes bytes;
    When when;  ///< else the job is skipped
    std::vector<TaskId> after;
    std::vector<Effect> at_start, at_end;
    /// What moves, and its buffer on the GPU, where the plan carries its meaning.
    Content content;
    BufferId buffer{};
  };
  /// A job is one task or two.
  struct Moved {
    TaskId first{}, last{};
  };
  Moved store(Step& step, const Job& job);
  Moved load(Step& step, const Job& job);
  /// The main thread moves the tensor itself and does nothing else meanwhile.
  Moved load_on_thread(Step& step, const Job& job);

  /// "NVMe (array4, array3) by GPUDirect"
  std::string describe(const Machine& machine) const;

 private:
  struct Pool {
    LaneId store{}, load{};
    LaneId store_file{}, load_copy{};  ///< second half of a bounced job
    std::optional<TokenId> store_workers, load_workers;
  };

  TransportOptions options_;
  std::vector<Pool> pools_;  // by rank

  std::uint16_t path_of(const Step& step, std::uint16_t rank) const;
  Work file(const Step& step, std::uint16_t rank, Direction direction, Place memory,
            Bytes bytes) const;
  Moved bounce(Step& step, const Job& job, bool is_store, bool on_thread);
  Moved bound(Step& step, const Job& job, bool is_store, const Moved& moved) const;
};

/// The keys that offloading policies share: `to` (path names, or host), `gpudirect`,
/// `store_workers`, `load_workers`, `aio: {block_size, queue_depth}`. Located errors: an unknown
/// path, GPUDirect on a path without it.
TransportOptions read_transport(yaml::Map& options, const Machine& machine);

}  // namespace tidegate
