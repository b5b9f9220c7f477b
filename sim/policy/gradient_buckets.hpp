#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/policy/policy.hpp"
#include "sim/policy/step.hpp"

namespace tidegate {

/// Data-parallel gradients (DeepSpeed's names): tensors are collected in the order in which
/// backward produces them; when the next would exceed reduce_bucket elements, the bucket is reduced
/// and handed to the optimizer. Stages 0 and 1 accumulate locally and reduce at the boundary alone.
///
///   fill bucket     gradient stream: after the kernels of the bucket's last tensor
///   reduce bucket   collective of the data-parallel group, into a flat buffer
///   (optimizer)     whatever it does with the reduced slice
///   norm of slice   gradient stream; frees the flat buffer
///
/// The compute stream waits for the reduction before the last two.
class GradientBuckets final : public GradientSink {
 public:
  GradientBuckets(Step& step, OptimizerPolicy& optimizer);

  /// The stage begins a backward with an empty bucket; buckets are numbered from 0 again.
  void begin(std::uint16_t stage, std::int64_t micro_step);
  void produced(const Visit& visit, const SubModule& part) override;
  /// Reduces what the stage's bucket holds and hands it to the optimizer; leaves the next one
  /// empty.
  void reduce(std::uint16_t stage);

  /// Stages 1 to 3, after the update: every rank gathers what the others have updated of all that
  /// it keeps whole.
  void gather_updated();

 private:
  enum class Around : std::uint8_t { before, behind };
  struct KnownKernels {  ///< of the last bucket: most are alike
    std::int64_t elements = -1;
    WorkId work{};
  };

  Step& step_;
  OptimizerPolicy& optimizer_;
  std::vector<std::vector<std::vector<Bucket::Tensor>>> tensors_;  // by layer and operator
  std::vector<Bucket> buckets_;                                    // by stage: being filled
  std::vector<TaskId> produced_by_;                 // by rank: kernels of the bucket's last tensor
  std::vector<LaneId> lanes_;                       // by rank: kernels around reductions
  std::vector<std::array<KnownKernels, 2>> known_;  // by rank and Around
  OwnerId flat_owner_{};
  // Of the reduction being added.
  std::vector<TaskId> filled_;
  std::vector<BufferId> flat_;
  std::vector<Effect> effects_;

  const ZeroOptions& zero() const { return step_.setting().zero; }
  double element_bytes() const { return bytes_per_element(step_.graph().dtype); }
  void number_tensors(std::uint16_t stage);
  void collect(std::uint16_t stage, const Bucket::Tensor& tensor);
  void reduce(const Bucket& bucket, const Communicator& communicator);
  void fill(const Bucket& bucket, const RankGroup& group);
  WorkId kernels(const Bucket& bucket, std::uint16_t rank, Around around);
  void hand_over(const Bucket& bucket, TaskId reduced, std::uint16_t rank,
                 std::optional<BufferId> flat);
  void gather_updated(const Communicator& communicator);
  void bind_gather(TaskId task, std::uint16_t first_rank);
};

}  // namespace tidegate
