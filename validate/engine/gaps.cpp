#include "validate/engine/gaps.hpp"

#include <algorithm>
#include <iterator>

namespace tidegate {
namespace {

// What has no bytes has a place of its own all the same.
std::int64_t room_for(std::int64_t bytes) { return whole_pages(std::max<std::int64_t>(1, bytes)); }

}  // namespace

std::optional<std::int64_t> Gaps::take(std::int64_t bytes) {
  const std::int64_t wanted = room_for(bytes);
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    const auto [offset, length] = *gap;
    if (length < wanted) continue;
    gaps_.erase(gap);
    if (length > wanted) gaps_[offset + wanted] = length - wanted;
    return offset;
  }
  return std::nullopt;
}

void Gaps::give_back(std::int64_t offset, std::int64_t bytes) {
  std::int64_t length = room_for(bytes);
  const auto behind = gaps_.find(offset + length);
  if (behind != gaps_.end()) {
    length += behind->second;
    gaps_.erase(behind);
  }
  const auto after = gaps_.lower_bound(offset);
  if (after != gaps_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += length;
      return;
    }
  }
  gaps_[offset] = length;
}

}  // namespace tidegate
