#include "sim/policy/saved_tensors.hpp"

#include <cstdint>
#include <unordered_map>

namespace tidegate {

SavedTensors::SavedTensors(const Layer& layer, bool deduplicates)
    : saved_at(layer.operators.size()), needed_at(layer.operators.size()) {
  std::unordered_map<std::int32_t, std::size_t> known;  // by storage
  for (std::size_t op = 0; op < layer.operators.size(); ++op) {
    for (const SavedTensor& t : layer.operators[op].saved) {
      const auto [found, is_new] = known.try_emplace(t.identity, tensors.size());
      if (is_new || !deduplicates) {
        saved_at[op].push_back(tensors.size());
        needed_at[op].push_back(tensors.size());
        tensors.push_back({t, op, op, !is_new});
        continue;
      }
      tensors[found->second].last = op;
      needed_at[op].push_back(found->second);
    }
  }
}

}  // namespace tidegate
