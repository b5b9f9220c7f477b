#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/graph/layer_graph.hpp"
#include "sim/plan/plan.hpp"

namespace tidegate {

class ParameterPolicy;
class Step;
struct Communicator;

/// What runs over a layer's kernels.
enum class Pass : std::uint8_t { forward, recompute, recompute_core, backward };

/// One run of a micro-batch over one layer, on every rank of the layer's stage.
struct Visit {
  std::size_t layer = 0;
  Pass pass = Pass::forward;
  std::uint16_t stage = 0;
  std::int32_t micro_batch = 0;  ///< of the iteration
};

/// Consecutive operators of a layer whose parameters ZeRO 3 gathers together: a sub-module.
/// Operators without parameters to gather belong to the sub-module before them.
struct SubModule {
  std::size_t first = 0, last = 0;  ///< operators, last included
  std::int64_t gathered = 0;        ///< elements of tensors at or above the persistence threshold
  std::int64_t shard = 0;           ///< elements of them that one rank holds
};

/// Gathers the parameters of ZeRO 3 just before they are used, and frees them after.
///
/// DeepSpeed records the order of uses in the first micro-step, in which nothing is gathered ahead:
/// a sub-module is requested when the one before it has computed. From then on entering a
/// sub-module also requests the next ones, until they hold prefetch_bucket elements, as soon as the
/// entered one begins to compute; but none while max_live elements wait for their use. A sub-module
/// that is used again within max_reuse_distance elements stays gathered.
class Gatherer {
 public:
  Gatherer(Step& step, const ParameterPolicy& parameters);

  /// The uses of one micro-step, in order. `is_recorded`: the order is known from an earlier one.
  void begin(std::span<const Visit> visits, bool is_recorded);
  /// The sub-modules of a layer: one for the whole layer below stage 3.
  std::span<const SubModule> sub_modules(std::size_t layer) const { return sub_modules_[layer]; }

  struct Ready {
    std::span<const TaskId> after;    ///< by rank: what computing has to wait for, or empty
    std::span<const BufferId> frees;  ///< by rank: gathered parameters that end here, or empty
  };
  /// Before the kernels of the next use are added: gathers its parameters if they are not there,
  /// and those of the uses to prefetch.
  /// It holds until begin().
  Ready next(Step& step);
  /// The kernels of that use, by rank.
  void used(std::span<const TaskId> kernels);

 private:
  struct Use {
    std::size_t layer = 0, sub_module = 0;
    std::int64_t elements = 0;
    bool is_gathered_before = false;  ///< kept from its previous use
    bool is_gathered = false;
    std::optional<std::size_t> reused;  ///< the later use that it is kept for
  };

  void add_uses(const Visit& visit);
  void find_reuse(std::int64_t max_reuse_distance);
  bool is_present(std::size_t use) const;
  bool may_prefetch(std::size_t use) const;
  void add_gate(std::size_t use, std::uint16_t rank, std::vector<TaskId>& gate) const;
  template <class T>
  std::span<T> row(std::vector<T>& list, std::size_t use) const {
    return {list.data() + use * ranks_, ranks_};
  }
  void gather(Step& step, std::size_t use);
  void gather(Step& step, std::size_t use, const Communicator& communicator);
  std::vector<std::int32_t> tensors_of(const Step& step, const Use& use) const;

  const ParameterPolicy& parameters_;
  bool is_active_;
  bool is_recorded_ = false;
  std::int64_t prefetch_bucket_, max_live_, max_reuse_distance_;
  double element_bytes_;
  OwnerId owner_;
  std::vector<std::vector<SubModule>> sub_modules_;  // by layer
  std::vector<Use> uses_;
  std::size_t ranks_;
  std::vector<BufferId> buffers_;     // by use and rank, like the next two
  std::vector<TaskId> gathers_;       // of uses that are gathered
  std::vector<TaskId> kernels_;       // of uses before at_
  std::vector<TaskId> gate_, after_;  // of the gather being added
  std::vector<Effect> effects_;
  std::size_t at_ = 0;
};

}  // namespace tidegate
