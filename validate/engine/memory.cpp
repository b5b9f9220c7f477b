#include "validate/engine/memory.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include <fmt/core.h>
#include <sys/mman.h>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

bool has_memory(const Pool& pool) { return pool.place.tier != Tier::storage; }

// Enough for any order of allocations: every buffer side by side, or what first fit needs at most,
// M·log2(n) for blocks of up to n that take M at a time (Robson 1977, "Worst case fragmentation of
// first fit and best fit storage allocation strategies"), in pages. M: the capacity and as much
// again that has been let go, and a page that each buffer may begin.
std::int64_t addresses_of(const Plan& plan, PoolId pool) {
  std::int64_t all = 0, largest = 0, count = 0;
  for (const Buffer& b : plan.buffers) {
    if (b.pool != pool) continue;
    const std::int64_t bytes = whole_pages(std::max<std::int64_t>(1, b.bytes));
    all += bytes, largest = std::max(largest, bytes), ++count;
  }
  constexpr std::int64_t page = whole_pages(1);
  const auto steps =
      static_cast<double>(std::bit_width(static_cast<std::uint64_t>(largest / page)));
  const double most = (2 * plan.pools[index(pool)].capacity.value() +
                       static_cast<double>(page) * static_cast<double>(count)) *
                      steps;
  return most < static_cast<double>(all) ? whole_pages(static_cast<std::int64_t>(most)) : all;
}

}  // namespace

Memories::Memories(const Plan& plan, Sharing sharing)
    : plan_(plan),
      arenas_(plan.pools.size()),
      offsets_(plan.buffers.size(), nowhere),
      is_counted_(plan.buffers.size()) {
  for (std::size_t p = 0; p < arenas_.size(); ++p) {
    const std::int64_t addresses = addresses_of(plan, static_cast<PoolId>(p));
    if (!has_memory(plan.pools[p]) || addresses == 0) continue;
    Arena& arena = arenas_[p];
    arena.memory =
        Mapping(static_cast<std::size_t>(addresses), sharing, "pool " + plan.pools[p].name);
    const auto bytes = arena.memory.bytes();
    madvise(bytes.data(), bytes.size(), MADV_HUGEPAGE);  // may be refused; small pages do as well
    arena.gaps = Gaps(addresses);
  }
}

void Memories::allocate(BufferId id, TaskId task) {
  const Buffer& buffer = plan_.buffers[index(id)];
  const Pool& pool = plan_.pools[index(buffer.pool)];
  Arena& arena = arenas_[index(buffer.pool)];
  const std::int64_t level = arena.level + buffer.bytes;
  if (static_cast<double>(level) > pool.capacity.value()) {
    throw MachineError(overfull(buffer, task));
  }
  ensure(offsets_[index(id)] == nowhere, "a buffer is allocated once");
  offsets_[index(id)] = 0;
  if (has_memory(pool)) {
    const auto offset = arena.gaps.take(buffer.bytes);
    if (!offset) {
      throw MachineError(fmt::format("pool {}: no gap of {} bytes among {} bytes of addresses",
                                     pool.name, buffer.bytes, arena.memory.bytes().size()));
    }
    offsets_[index(id)] = *offset;
  }
  is_counted_[index(id)] = true;
  arena.level = level;
  arena.peak = std::max(arena.peak, level);
}

void Memories::let_go(BufferId id) {
  const Buffer& buffer = plan_.buffers[index(id)];
  ensure(is_counted_[index(id)], "a buffer is let go once, after its allocation");
  is_counted_[index(id)] = false;
  arenas_[index(buffer.pool)].level -= buffer.bytes;
}

void Memories::free(BufferId id) {
  const Buffer& buffer = plan_.buffers[index(id)];
  ensure(offsets_[index(id)] != nowhere, "a buffer is freed after its allocation");
  if (is_counted_[index(id)]) let_go(id);
  if (has_memory(plan_.pools[index(buffer.pool)]))
    arenas_[index(buffer.pool)].gaps.give_back(offsets_[index(id)], buffer.bytes);
  offsets_[index(id)] = nowhere;
}

std::span<std::byte> Memories::bytes_of(BufferId id) const {
  const Buffer& buffer = plan_.buffers[index(id)];
  const auto all = arenas_[index(buffer.pool)].memory.bytes();
  const std::int64_t offset = offsets_[index(id)];
  if (all.empty() || offset == nowhere) return {};
  return all.subspan(static_cast<std::size_t>(offset),
                     static_cast<std::size_t>(whole_pages(buffer.bytes)));
}

std::string Memories::overfull(const Buffer& buffer, TaskId task) const {
  const Pool& pool = plan_.pools[index(buffer.pool)];
  std::map<std::string, std::int64_t> owners;
  for (std::size_t b = 0; b < offsets_.size(); ++b) {
    const Buffer& held = plan_.buffers[b];
    if (!is_counted_[b] || held.pool != buffer.pool) continue;
    owners[plan_.owners[index(held.owner)]] += held.bytes;
  }
  std::vector<std::pair<std::int64_t, std::string>> largest;
  for (const auto& [name, bytes] : owners) largest.emplace_back(bytes, name);
  std::ranges::sort(largest, std::greater<>{});
  std::string text = fmt::format(
      "pool {} is full: task '{}' of rank {} needs {} for {}, and of {} there are", pool.name,
      plan_.label(task), plan_.task(task).rank, to_text(Bytes(static_cast<double>(buffer.bytes))),
      plan_.owners[index(buffer.owner)], to_text(pool.capacity));
  constexpr std::size_t most = 4;
  for (std::size_t i = 0; i < std::min(most, largest.size()); ++i) {
    text += fmt::format("{} {} of {}", i == 0 ? "" : ",",
                        to_text(Bytes(static_cast<double>(largest[i].first))), largest[i].second);
  }
  return text + (largest.empty() ? " none held" : " held");
}

}  // namespace tidegate
