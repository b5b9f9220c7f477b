#pragma once

#include <cstdint>
#include <vector>

/// How the GPUs of a cluster divide a training step, and which of them a plan contains.
namespace tidegate {

/// Degrees of model parallelism. What is left of the GPUs is data parallelism.
struct Parallel {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;  ///< stages
  std::int64_t chunks = 1;    ///< pieces of a stage in an interleaved schedule (virtual stages)
  bool operator==(const Parallel&) const = default;
};

/// Data-parallel peers (or tensor-parallel ones) of which some are in the plan.
struct RankGroup {
  std::uint16_t first = 0, stride = 1;
  std::uint16_t here = 1;      ///< ranks of the plan: first + i · stride
  std::int64_t size = 1;       ///< ranks of the whole group
  std::uint16_t per_node = 1;  ///< ranks of the group on each node

  std::uint16_t rank(std::uint16_t i) const {
    return static_cast<std::uint16_t>(first + i * stride);
  }
};

/// Ranks are numbered tensor first, then data, then pipeline (Megatron-LM's and DeepSpeed's order),
/// and rank i of a plan has GPU i of the simulated nodes. A plan holds
///   without a pipeline     the ranks of one node: nodes are alike;
///   with a pipeline        of each stage the ranks of one node, or all of them where a node holds
///                          several stages.
/// Folded, one rank stands for its whole tensor-parallel group: right when they all do the same
/// and share nothing but their own links.
class Layout {
 public:
  /// tensor · pipeline divides the GPUs, and tensor those of a node; a stage is whole nodes or part
  /// of one.
  Layout(const Parallel& parallel, std::int64_t nodes, std::int64_t gpus_per_node, bool is_folded);
  /// `ranks` data-parallel ranks, all of them here, of `world`.
  static Layout data_parallel(std::uint16_t ranks, std::int64_t world);

  const Parallel& parallel() const { return parallel_; }
  std::int64_t world() const { return gpus_; }
  std::int64_t data() const { return gpus_ / (parallel_.tensor * parallel_.pipeline); }

  std::uint16_t ranks() const { return static_cast<std::uint16_t>(per_stage_ * stages()); }
  std::uint16_t stages() const { return static_cast<std::uint16_t>(parallel_.pipeline); }
  std::uint16_t ranks_per_stage() const { return per_stage_; }
  std::uint16_t stage_of(std::uint16_t rank) const {
    return static_cast<std::uint16_t>(rank / per_stage_);
  }
  std::uint16_t first_rank(std::uint16_t stage) const {
    return static_cast<std::uint16_t>(stage * per_stage_);
  }
  /// Ranks of a tensor-parallel group that are in the plan.
  std::uint16_t tensor_here() const { return tensor_here_; }

  /// Nodes that the plan contains, and GPUs of each.
  std::int32_t nodes_here() const { return nodes_here_; }
  std::int32_t gpus_per_node_here() const { return gpus_per_node_here_; }

  /// The groups of a stage; no tensor-parallel ones without tensor parallelism, and data-parallel
  /// ones of one rank without data parallelism.
  std::vector<RankGroup> tensor_groups(std::uint16_t stage) const;
  std::vector<RankGroup> data_groups(std::uint16_t stage) const;

 private:
  Layout() = default;

  Parallel parallel_;
  std::int64_t gpus_ = 1;
  std::uint16_t per_stage_ = 1, tensor_here_ = 1;
  std::uint16_t data_per_node_ = 1;
  std::int32_t nodes_here_ = 1, gpus_per_node_here_ = 1;
};

}  // namespace tidegate
