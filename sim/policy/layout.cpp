#include "sim/policy/layout.hpp"

#include <algorithm>

#include "models/base/error.hpp"

namespace tidegate {

Layout::Layout(const Parallel& parallel, std::int64_t nodes, std::int64_t gpus_per_node,
               bool is_folded)
    : parallel_(parallel), gpus_(nodes * gpus_per_node) {
  const std::int64_t t = parallel.tensor, p = parallel.pipeline;
  ensure(t >= 1 && p >= 1 && parallel.chunks >= 1, "parallel degrees are positive");
  ensure(gpus_ % (t * p) == 0, "tensor and pipeline parallelism divide the GPUs");
  ensure(gpus_per_node % t == 0, "tensor parallelism divides the GPUs of a node");
  const std::int64_t stage = gpus_ / p;  // ranks of a stage
  ensure(stage % gpus_per_node == 0 || gpus_per_node % stage == 0,
         "a stage is whole nodes or part of one");
  const std::int64_t seen = std::min(stage, gpus_per_node);
  const std::int64_t fold = is_folded ? t : 1;
  per_stage_ = static_cast<std::uint16_t>(seen / fold);
  tensor_here_ = static_cast<std::uint16_t>(t / fold);
  data_per_node_ = static_cast<std::uint16_t>(seen / t);
  gpus_per_node_here_ = static_cast<std::int32_t>(gpus_per_node / fold);
  nodes_here_ = static_cast<std::int32_t>((seen * p + gpus_per_node - 1) / gpus_per_node);
}

Layout Layout::data_parallel(std::uint16_t ranks, std::int64_t world) {
  ensure(ranks >= 1 && world % ranks == 0, "nodes have equal numbers of ranks");
  return Layout({}, world / ranks, ranks, false);
}

std::vector<RankGroup> Layout::tensor_groups(std::uint16_t stage) const {
  std::vector<RankGroup> groups;
  if (parallel_.tensor == 1) return groups;
  const auto size = static_cast<std::uint16_t>(parallel_.tensor);
  for (std::uint16_t r = 0; r < per_stage_; r = static_cast<std::uint16_t>(r + tensor_here_)) {
    const auto first = static_cast<std::uint16_t>(first_rank(stage) + r);
    groups.push_back({first, 1, tensor_here_, size, size});
  }
  return groups;
}

std::vector<RankGroup> Layout::data_groups(std::uint16_t stage) const {
  std::vector<RankGroup> groups;
  const auto here = static_cast<std::uint16_t>(per_stage_ / tensor_here_);
  for (std::uint16_t t = 0; t < tensor_here_; ++t) {
    const auto first = static_cast<std::uint16_t>(first_rank(stage) + t);
    groups.push_back({first, tensor_here_, here, data(), data_per_node_});
  }
  return groups;
}

}  // namespace tidegate
