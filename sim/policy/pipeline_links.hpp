#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/policy/schedule.hpp"
#include "sim/policy/step.hpp"

namespace tidegate {

/// What the pieces of a pipelined network send each other: activations to the piece behind,
/// gradients to the piece before, rank i of a stage to rank i of the other.
///
/// Tensor-parallel ranks hold the same activations. Each sends its part alone, and the receivers
/// gather it within their group (scatter and gather of Megatron-LM: Narayanan et al. 2021, arXiv
/// 2104.04473, section 4.1). With sequence parallelism each rank has and needs a part anyway.
class PipelineLinks {
 public:
  explicit PipelineLinks(Step& step);

  /// An iteration begins: nothing is under way.
  void begin() { sent_.clear(); }
  /// The first kernels of an action wait for what its neighbour sent.
  void receive(const Action& action);
  /// Sends what the action has computed, when its last kernels have ended.
  void send(const Action& action);

 private:
  Step& step_;
  std::vector<std::array<LaneId, 2>> lanes_;  // by rank: to the piece before, and behind
  std::unordered_map<std::uint64_t, std::vector<TaskId>> sent_;  // by rank of the stage

  std::int64_t stages() const { return step_.layout().stages(); }
  std::uint64_t key(std::int64_t piece, const Action& action) const;
  /// The layer before which a piece and its neighbour part.
  std::size_t border(std::int64_t piece, std::int64_t neighbour) const;
  void gather(const Action& action, std::vector<TaskId>& received);
};

}  // namespace tidegate
