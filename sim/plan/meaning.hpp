#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "sim/plan/ids.hpp"

/// What the tasks of a plan compute and move: the facts that an executor with real tensors needs
/// and the simulator does not. A plan carries them when it is asked to (Setting::carries_meaning).
///
/// A task does its deeds in order. A deed reads contents where they are and writes others; a
/// content that lies in a buffer goes with it, any other stays until it is written again or
/// forgotten. So the meaning of a plan is right when every read finds its content, in every order
/// that the plan allows, whoever moved it there (sim/timeline/contents.hpp).
namespace tidegate {

/// A value of the training step. Parameter tensors are numbered over the layers, in the order of a
/// layer's operators and of each operator's own list; elements are counted in the whole tensor.
struct Content {
  enum class Kind : std::uint8_t {
    flow,       ///< what operators of a pass hand on; `tensor`: 0 forward, 1 rerun, 2 backward
    saved,      ///< storage `tensor` of `layer` from forward to backward; 0: what enters the layer
    parameter,  ///< a whole tensor in the network's type, as kernels read it
    shard,      ///< a slice of it, at the rank that owns it
    gradient,   ///< of a whole tensor, as one rank's backward gives it
    tied,       ///< the part of it from the head, where the head shares the embedding's table
    slice,      ///< of the mean gradient of a micro-step, at the rank that owns it
    sum,        ///< of slices over the micro-steps so far, in the network's type
    sum32,      ///< the same in fp32, as Adam on a host reads it
    master,     ///< fp32 parameters of the owner's slice
    moments,    ///< both moments of Adam, in the type of the master, or of the parameters
    border      ///< what a pipeline stage gets: `tensor` 0 the stream, 2 its gradient
  };
  Kind kind = Kind::flow;
  std::uint16_t rank = 0;
  std::int32_t layer = -1;
  std::int32_t tensor = -1;
  std::int32_t micro_batch = -1;  ///< flow and saved: counted over the run; border: of the step
  std::int32_t copy = 0;          ///< saved: operator + 1 where every saving is kept apart
  std::int64_t first = 0, count = 0;
  bool operator==(const Content&) const = default;
};

/// A content at a place: in a buffer, or in memory of the pool that stands as long as the run.
struct Access {
  enum class How : std::uint8_t { read, write, forget };
  static constexpr BufferId standing{std::numeric_limits<std::uint32_t>::max()};
  ContentId content{};
  BufferId buffer = standing;
  When when;  ///< else it does not happen
  PoolId pool{};
  How how = How::read;
};

struct Deed {
  enum class Verb : std::uint8_t {
    initialise,  ///< writes what stands at the start: parameters, masters, zero moments
    forward,     ///< operator `op` of `layer` on a micro-batch; reading no flow, from what is saved
    backward,    ///< the same
    keep,        ///< what operator `op` saves of what enters it, from the flow; it does not run
    move,        ///< the read content to where it is written; rounded where the kinds differ
    gather,      ///< a tensor from its owners' shards
    reduce,      ///< the mean of the ranks' gradients, a slice to each owner
    add,         ///< the sum of what is read, rounded
    adam,        ///< reads sum, master (else the shard), moments; writes those that are listed
    sgd,         ///< the same without moments
    cast         ///< a shard from its master
  };
  TaskId task{};
  std::uint32_t first_access = 0, access_count = 0;
  std::int32_t layer = -1, op = -1, micro_batch = -1;
  Verb verb = Verb::move;
};
const char* name_of(Deed::Verb verb);
const char* name_of(Content::Kind kind);

/// What a plan does to its parameters that training without the plan does likewise.
struct Update {
  enum class Rule : std::uint8_t { adam, sgd };
  Rule rule = Rule::adam;
  /// fp32 parameters and moments; else there are but the network's, in its type.
  bool keeps_master = true;
  /// A step computes with the parameters that the update before the last one has left.
  bool is_delayed = false;
  bool operator==(const Update&) const = default;
};

struct Meaning {
  Update update;
  std::vector<std::uint16_t> batches;  ///< by rank: its number among data-parallel ranks
  std::vector<Content> contents;
  std::vector<Deed> deeds;  ///< by task, those of a task in their order
  std::vector<Access> accesses;
  std::vector<std::uint32_t> first_deed;  ///< by task, and one more

  bool is_carried() const { return !first_deed.empty(); }
  std::span<const Deed> of(TaskId task) const {
    if (!is_carried()) return {};
    return {deeds.data() + first_deed[index(task)], deeds.data() + first_deed[index(task) + 1]};
  }
  std::span<const Access> of(const Deed& deed) const {
    return {accesses.data() + deed.first_access, deed.access_count};
  }
  const Content& content(ContentId id) const { return contents[index(id)]; }
  /// Puts the deeds in the order of their tasks, of which there are `tasks`.
  void put_in_order(std::size_t tasks);
};
/// "saved 3 of layer 2, micro-batch 0, rank 1"
std::string to_text(const Content& content);
std::size_t hash_of(const Content& content);

}  // namespace tidegate
