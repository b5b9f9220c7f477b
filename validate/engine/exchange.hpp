#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/work.hpp"

/// What the members of a collective send and receive, and with which numbers it is tried.
namespace tidegate {

/// GPUs of a group by number, in the order of its ranks.
std::vector<std::uint16_t> members_of(const Collective& collective);

/// fp32 numbers of each member.
struct Exchange {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int64_t members = 1;
  std::int64_t part = 0;  ///< of the whole buffer, one for each member

  std::int64_t whole() const { return members * part; }
  std::int64_t sent() const { return kind == CollectiveKind::all_gather ? part : whole(); }
  std::int64_t received() const { return kind == CollectiveKind::reduce_scatter ? part : whole(); }
  bool operator==(const Exchange&) const = default;
};
/// As many bytes as the collective has, rounded up to parts of whole 16 bytes.
Exchange exchange_of(const Collective& collective);

/// The number that `member` sends at `i` of its buffer when a collective is tried,
///   1 + ((i + 7 member) mod trial_period) / 64,
/// whose sums over some thousands of members are exact in fp32.
float trial_sent(std::int64_t member, std::int64_t i);
constexpr std::int64_t trial_period = 61;
/// What `member` then has to receive at `i`.
float trial_received(const Exchange& exchange, std::int64_t member, std::int64_t i);

/// Where a trial looks: the first numbers of each part that a member receives, and the last.
constexpr std::int64_t trial_window = 256;  ///< numbers; fewer where less is received
std::vector<std::int64_t> trial_windows(const Exchange& exchange);

}  // namespace tidegate
