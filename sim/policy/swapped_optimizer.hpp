#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/policy/policy.hpp"

/// Optimizer states in files on one or more storage paths, sub-group by sub-group through pinned
/// buffers, Adam on the host. DeepSpeed's NVMe swapper and MLP-Offload are settings of this one
/// thing.
namespace tidegate {

struct SwapOptions {
  std::string title;
  std::vector<std::uint16_t> paths;           ///< indices of the machine's storage paths
  std::vector<double> shares;                 ///< of the parameters, by path; empty: modulo
  std::int64_t modulus = 0;                   ///< sub-group id mod modulus == 0 goes to path 1
  std::int64_t sub_group_size = 100'000'000;  ///< elements of a rank's shard
  std::int64_t buffer_count = 4;              ///< pinned buffers per path and rank
  bool is_read_pipelined = true;              ///< the next sub-group is read during the present one
  bool is_write_pipelined = true;             ///< a write is waited for one sub-group later
  std::vector<bool> is_exclusive;             ///< by path: one rank at a time does I/O on it
  bool is_cached = false;              ///< order alternates, the last sub-groups stay in memory
  bool has_delayed_gradients = false;  ///< 16-bit gradients stay in host memory and are
                                       ///< converted just before Adam; no gradient files
  bool is_upload_async = false;        ///< new parameters travel while the thread goes on
  Bytes block = Bytes(2 << 20);
  std::int32_t queue_depth = 8, threads = 4;
};

std::unique_ptr<OptimizerPolicy> swapped_optimizer(SwapOptions options);

/// Pinned buffers that the update holds at once, on each path:
///
///   states · (1 + pipeline_read + pipeline_write)
///
/// for the sub-group that is updated, the one read ahead and the one written behind; states are the
/// parameter, two moments, and the gradient where that is in files too. With fewer DeepSpeed stops
/// ("ran out of swap buffers"). Source:
/// deepspeed/runtime/swap_tensor/pipelined_optimizer_swapper.py; MLP-Offload's fork reads three
/// files of a sub-group with delayed gradients.
std::int64_t buffers_needed(const SwapOptions& options);

/// "12 buffers", and when they are fewer than needed what is.
std::string buffers_text(const SwapOptions& options);

/// The keys that both table lines share: sub_group_size, buffer_count, pipeline_read,
/// pipeline_write, aio: {block_size, queue_depth, thread_count}.
void read_swap_options(yaml::Map& options, SwapOptions& into);

/// All keys of `optimizer: zero_infinity` and of `optimizer: mlp_offload`; nothing when a path is
/// not one of the machine's, which has been reported.
SwapOptions read_zero_infinity(yaml::Map& options, const Machine& machine);
std::optional<SwapOptions> read_mlp_offload(yaml::Map& options, const Machine& machine);

/// Sub-groups per path that stay in host memory: buffers / 3 (p, m, v), or one buffer more each and
/// one sub-group less when gradients use buffers too. Source: MLP-Offload fork, flushed counts of
/// the logs.
std::int64_t cached_per_path(std::int64_t buffer_count, bool has_delayed_gradients);

}  // namespace tidegate
