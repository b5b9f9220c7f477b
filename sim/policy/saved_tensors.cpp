#include "sim/policy/saved_tensors.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace tidegate {
namespace {

std::string_view word_for(LayerKind kind) {
  switch (kind) {
    case LayerKind::embedding:
      return "embedding";
    case LayerKind::block:
      return "block";
    case LayerKind::head:
      return "head";
    case LayerKind::other:
      return "other";
  }
  return "";
}

bool is_excluded(const Layer& layer, const Operator& op, const StoreScope& scope) {
  return std::ranges::any_of(scope.excluded, [&](const std::string& name) {
    return name == word_for(layer.kind) || name == layer.name || name == op.name;
  });
}

}  // namespace

SavedTensors::SavedTensors(const Layer& layer, const StoreScope& scope, bool deduplicates)
    : saved_at(layer.operators.size()), needed_at(layer.operators.size()) {
  std::unordered_map<std::int32_t, std::size_t> known;  // by storage
  for (std::size_t op = 0; op < layer.operators.size(); ++op) {
    const bool stay = is_excluded(layer, layer.operators[op], scope);
    for (const SavedTensor& t : layer.operators[op].saved) {
      const auto [found, is_new] = known.try_emplace(t.identity, tensors.size());
      if (is_new || !deduplicates) {
        saved_at[op].push_back(tensors.size());
        needed_at[op].push_back(tensors.size());
        tensors.push_back({t, op, op, !stay && t.elements >= scope.threshold, !is_new});
        continue;
      }
      tensors[found->second].last = op;
      needed_at[op].push_back(found->second);
    }
  }
}

}  // namespace tidegate
