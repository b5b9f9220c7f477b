#pragma once

#include "sim/offload/planners.hpp"

namespace tidegate {

/// The point at which the fetch of `move` is issued: `ahead` of `in_before`, at the earliest after
/// `out_after`, and for the last layer when backward begins.
std::size_t fetch_point(const TensorTrace& trace, const Move& move, Ahead ahead);

/// Begins fetches earlier while memory has room for them: each offloaded tensor, in the order of
/// `in_at`, takes the points before its fetch, down to `floor` at most, that stay within `line`
/// with its bytes.
void fetch_where_room(const TensorTrace& trace, std::vector<Move>& moves, Bytes line,
                      std::size_t floor);

}  // namespace tidegate
