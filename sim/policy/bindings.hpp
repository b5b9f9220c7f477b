#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/policy/segments.hpp"
#include "sim/policy/step.hpp"
#include "sim/policy/sub_groups.hpp"

/// Says what the tasks of a plan mean (sim/plan/meaning.hpp), as policies add them.
namespace tidegate {

/// The meaning of a plan of one pipeline stage and one tensor-parallel rank, all data-parallel
/// ranks of which are in the plan. Policies say where tensors are; kernels, reductions and gathers
/// find them there.
class Bindings {
 public:
  /// Throws InputError for an arrangement of ranks whose meaning is not written down.
  explicit Bindings(Step& step);

  /// Numbers of parameter tensors (Content).
  using Tensors = std::vector<std::int32_t>;
  /// Of operators [first, last] of a layer, those of `least` elements or more.
  Tensors tensors_of(std::size_t layer, std::size_t first, std::size_t last,
                     std::int64_t least = 0) const;
  Tensors all_tensors() const;
  /// By their place in the order of registration.
  std::int32_t registered(std::size_t index) const { return by_registration_[index]; }
  Tensors tensors_of(const Bucket& bucket) const;
  std::int64_t elements_of(std::int32_t tensor) const {
    return tensors_[static_cast<std::size_t>(tensor)].elements;
  }
  /// Of each sub-group.
  std::vector<Tensors> tensors_of(std::span<const SubGroup> groups) const;

  /// At the start of the run `kind` of every rank's slice (of the whole, for parameters) is in its
  /// pool; `set_up` is the task that puts all of it there.
  void stands(Content::Kind kind, const Tensors& tensors, std::uint16_t rank, PoolId pool);
  void set_up(TaskId set_up);

  /// A saved tensor of a visit is, or will be, in one of these buffers.
  struct At {
    BufferId buffer{};
    When when;
  };
  void put(const Visit& visit, std::uint16_t rank, std::int32_t identity, std::int32_t copy,
           std::vector<At> places);
  Content saved(const Visit& visit, std::uint16_t rank, std::int32_t identity,
                std::int32_t copy) const;
  /// The operators of a segment.
  void computed(TaskId task, const Visit& visit, const Segment& segment, std::uint16_t rank);

  /// Whole parameters from the shards of all ranks, into `buffers` by rank (or standing memory).
  /// The shards are in `from` by rank; `forgets`: they are copies that go.
  void gathered(TaskId task, const Tensors& tensors, std::span<const PoolId> from, bool forgets,
                std::span<const BufferId> buffers);
  /// Mean gradients, a slice to each rank; `buffers` by rank of the group (or standing memory).
  void reduced(TaskId task, const Bucket& bucket, std::span<const BufferId> buffers);
  /// slice [+ the sum so far in `sum_in`] -> `to` in `to_pool`.
  void added(TaskId task, const Tensors& tensors, std::uint16_t rank, bool is_first, PoolId sum_in,
             Content::Kind to, PoolId to_pool);

  struct Place {
    Content::Kind kind;
    PoolId pool{};
  };
  /// Owner's slices from one place to another; `forgets`: they are then gone where they were.
  void moved(TaskId task, const Tensors& tensors, std::uint16_t rank, Place from, Place to,
             bool forgets = false);
  void moved(TaskId task, const Content& content, std::pair<PoolId, BufferId> from,
             std::pair<PoolId, BufferId> to, bool forgets = false);
  /// Moments that are zero.
  void made_moments(TaskId task, const Tensors& tensors, std::uint16_t rank, PoolId pool);
  /// Adam on the slices of a rank in `pool`; writes 16-bit numbers as well where `writes` says so:
  /// shard or parameter.
  void adam(TaskId task, const Tensors& tensors, std::uint16_t rank, PoolId pool, Content::Kind sum,
            std::span<const Content::Kind> writes = {});
  /// 16-bit shards from masters, both in `pool`.
  void cast(TaskId task, const Tensors& tensors, std::uint16_t rank, PoolId pool);
  /// Where the last update left the shard of a rank.
  PoolId updated_in(std::uint16_t rank, std::int32_t tensor) const {
    return updated_in_[rank][static_cast<std::size_t>(tensor)];
  }

  [[noreturn]] static void refuse(const std::string& what);

 private:
  struct Tensor {
    std::size_t layer = 0, op = 0;
    std::int64_t elements = 0;
  };
  using SavedKey = std::tuple<std::uint16_t, std::int32_t, std::size_t, std::int32_t, std::int32_t>;

  Step& step_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<std::int32_t>> first_tensor_;  // by layer and operator
  Tensors by_registration_;
  std::vector<std::map<std::int32_t, std::size_t>> first_saver_;  // by layer: of an identity
  std::map<SavedKey, std::vector<At>> places_;
  std::vector<std::vector<BufferId>> parameter_in_, slice_in_;  // by rank and tensor
  std::vector<std::vector<PoolId>> updated_in_;                 // likewise
  std::vector<Access> standing_;
  std::size_t tied_ = 0;  // layer of a tied projection, 0: none

  std::int32_t of_run(const Visit& visit) const;
  Content flow(const Visit& visit, std::uint16_t rank) const;
  Content whole(Content::Kind kind, std::int32_t tensor, std::uint16_t rank) const;
  Content owned(Content::Kind kind, std::int32_t tensor, std::uint16_t rank) const;
  Access access(Access::How how, const Content& content, PoolId pool,
                BufferId buffer = Access::standing, When when = {});
  void mean(TaskId task, Deed::Verb verb, std::span<const Access> accesses);
  const std::vector<At>* places(const Visit& visit, std::uint16_t rank, std::int32_t identity,
                                std::int32_t copy) const;
  bool is_saved_outside_core(std::size_t layer, std::int32_t identity) const;
  bool is_tied(std::size_t layer, std::size_t op) const;
  void number_tensors();
  void forward(TaskId task, const Visit& visit, std::size_t op, std::uint16_t rank);
  void backward(TaskId task, const Visit& visit, std::size_t op, std::uint16_t rank);
  void enter(std::vector<Access>& list, const Visit& visit, std::size_t op, std::uint16_t rank);
  void read_parameters(std::vector<Access>& list, const Visit& visit, std::size_t op,
                       std::uint16_t rank);
  void save(std::vector<Access>& list, const Visit& visit, std::size_t op, std::uint16_t rank);
  void read_saved(std::vector<Access>& list, const Visit& visit, std::size_t op,
                  std::uint16_t rank);
  void write_gradients(std::vector<Access>& list, const Visit& visit, std::size_t op,
                       std::uint16_t rank);
  void release(const Visit& visit, std::size_t op, std::uint16_t rank);
};

}  // namespace tidegate
