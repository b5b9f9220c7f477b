#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/graph/layer_graph.hpp"

namespace tidegate {

/// Which saved tensors an offloading policy may move at all.
struct StoreScope {
  std::int64_t threshold = 1 << 23;              ///< elements; smaller tensors stay
  std::vector<std::string> excluded = {"head"};  ///< layers, kinds of layer, operators
};

/// The tensors that a layer keeps from forward to backward, by operator: who saves each first, and
/// whose backward needs it. Deduplicated, a storage that several operators save is one tensor;
/// else every saving is a tensor of its own, of which only the first holds memory in forward.
struct SavedTensors {
  struct Tensor {
    SavedTensor saved;
    std::size_t first = 0, last = 0;  ///< operators that save it
    bool may_be_stored = false;       ///< within the scope
    bool is_repeated = false;         ///< a later saving of a storage, where they are not one
  };
  std::vector<Tensor> tensors;
  /// Indices of tensors: saved first by the operator; needed by its backward.
  std::vector<std::vector<std::size_t>> saved_at, needed_at;

  SavedTensors(const Layer& layer, const StoreScope& scope, bool deduplicates);
};

}  // namespace tidegate
