#pragma once

#include <cstdint>
#include <map>
#include <optional>
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

/// The meaning of a plan without tensor parallelism, all ranks of which are in the plan. Policies
/// say where tensors are; kernels, reductions and gathers find them there.
class Bindings {
 public:
  /// Throws InputError for an arrangement of ranks whose meaning is not written down.
  explicit Bindings(Step& step);

  /// Numbers of parameter tensors (Content), or of pieces of them.
  using Tensors = std::vector<std::int32_t>;
  /// Of operators [first, last] of a layer, those of `least` elements or more.
  Tensors tensors_of(std::size_t layer, std::size_t first, std::size_t last,
                     std::int64_t least = 0) const;
  /// Of the rank's stage.
  Tensors all_tensors(std::uint16_t rank) const;
  /// By their place in the order of registration of the stage.
  std::int32_t registered(std::size_t index, std::uint16_t stage = 0) const {
    return by_registration_[stage][index];
  }
  Tensors tensors_of(const Bucket& bucket) const;
  std::int64_t elements_of(std::int32_t tensor) const {
    return tensors_[static_cast<std::size_t>(tensor)].elements;
  }
  /// Of each sub-group of a stage.
  std::vector<Tensors> tensors_of(std::span<const SubGroup> groups, std::uint16_t stage) const;
  /// The first `count` elements of every owner's slice of a tensor, and the rest of it, which go
  /// separate ways. The same numbers whenever it is asked for.
  std::pair<std::int32_t, std::int32_t> cut(std::int32_t tensor, std::int64_t count);

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
  /// Operators [first, end) of the visit's layer run again, the first from what it has saved,
  /// beside it the storages `with`. The storages `made` are written where they were put; of those
  /// that operator `end` saves it is what enters it.
  struct Again {
    std::size_t first = 0, end = 0;
    std::vector<std::int32_t> with, made;
  };
  void computed_again(TaskId task, const Visit& visit, const Again& again, std::uint16_t rank);
  /// What the last layer of a forward, or the first of a backward, has left goes to another stage.
  void sent(TaskId task, std::int32_t micro_batch, bool is_forward, std::uint16_t from,
            std::uint16_t to);

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
  /// The plan's update (below) of the slices of a rank in `pool`; writes 16-bit numbers as well
  /// where `writes` says so: shard or parameter.
  void updated(TaskId task, const Tensors& tensors, std::uint16_t rank, PoolId pool,
               Content::Kind sum, std::span<const Content::Kind> writes = {});
  /// How all of them are updated; without a word, by Adam at once, on masters.
  void updates(const Update& update);
  const Update& update() const { return update_; }
  /// 16-bit shards from masters, both in `pool`.
  void cast(TaskId task, const Tensors& tensors, std::uint16_t rank, PoolId pool);
  /// Where the last update left the shard of a rank; none before the first.
  std::optional<PoolId> updated_in(std::uint16_t rank, std::int32_t tensor) const {
    return updated_in_[rank][static_cast<std::size_t>(tensor)];
  }

  [[noreturn]] static void refuse(const std::string& what);

 private:
  struct Tensor {
    std::size_t layer = 0, op = 0;
    std::int64_t elements = 0;
    std::uint16_t stage = 0;
  };
  struct Part {  // of every owner's slice of a tensor
    std::int32_t tensor = 0;
    std::int64_t first = 0, last = 0;
  };
  using SavedKey = std::tuple<std::uint16_t, std::int32_t, std::size_t, std::int32_t, std::int32_t>;

  Step& step_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<std::int32_t>> first_tensor_;  // by layer and operator
  std::vector<Tensors> by_registration_;                 // by stage
  std::vector<Part> parts_;                              // numbered behind the tensors
  std::map<std::int32_t, std::int32_t> cuts_;            // by tensor: number of its first part
  Update update_;
  std::vector<std::map<std::int32_t, std::size_t>> first_saver_;  // by layer: of an identity
  std::map<SavedKey, std::vector<At>> places_;
  std::vector<std::vector<BufferId>> parameter_in_, slice_in_;  // by rank and tensor
  std::vector<std::vector<std::optional<PoolId>>> updated_in_;  // likewise
  std::vector<Access> standing_;
  std::size_t tied_ = 0;  // layer of a tied projection, 0: none

  const ZeroOptions& zero() const { return step_.setting().zero; }
  std::int32_t of_run(const Visit& visit) const;
  std::uint16_t owner(std::uint16_t rank) const;
  std::uint16_t stage_of(std::int32_t tensor) const {
    return tensors_[static_cast<std::size_t>(whole_of(tensor))].stage;
  }
  std::int32_t whole_of(std::int32_t tensor) const;
  Tensors pieces_of(std::int32_t tensor) const;
  Content border(std::int32_t micro_batch, bool is_forward, std::uint16_t rank) const;
  bool enters_piece(const Visit& visit, bool from_behind) const;
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
  void number_layer(std::size_t layer, std::uint16_t stage);
  void stand_whole(std::uint16_t rank);
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
