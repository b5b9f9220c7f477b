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

Memories::Memories(const Plan& plan, Sharing sharing, Devices devices)
    : plan_(plan),
      arenas_(plan.pools.size()),
      offsets_(plan.buffers.size(), nowhere),
      is_counted_(plan.buffers.size()),
      devices_(std::move(devices)) {
  for (std::size_t p = 0; p < arenas_.size(); ++p) {
    const std::int64_t addresses = addresses_of(plan, static_cast<PoolId>(p));
    if (!has_memory(plan.pools[p]) || addresses == 0) continue;
    const Pool& pool = plan.pools[p];
    if (pool.place.tier == Tier::gpu && !devices_.empty()) {
      arenas_[p].device = devices_.at(pool.place.index).get();
    } else {
      map(arenas_[p], pool, addresses, sharing);
    }
  }
}

// Pieces that are pinned begin at a multiple of their size.
void Memories::map(Arena& arena, const Pool& pool, std::int64_t addresses, Sharing sharing) const {
  const std::size_t piece = devices_.empty() ? 1 : Device::pinned_piece;
  const std::size_t pieces = (static_cast<std::size_t>(addresses) + piece - 1) / piece;
  const std::size_t size = pieces * piece + piece - 1;
  arena.memory = Mapping(size, sharing, "pool " + pool.name);
  const auto bytes = arena.memory.bytes();
  madvise(bytes.data(), bytes.size(), MADV_HUGEPAGE);  // may be refused; small pages do as well
  const std::size_t over = reinterpret_cast<std::uintptr_t>(bytes.data()) % piece;
  arena.base = bytes.data() + (over == 0 ? 0 : piece - over);
  arena.gaps = Gaps(addresses);
  if (!devices_.empty()) arena.pinned.resize(pieces);
}

Memories::~Memories() {
  for (std::size_t b = 0; b < offsets_.size(); ++b) {
    const Arena& arena = arenas_[index(plan_.buffers[b].pool)];
    if (arena.device != nullptr && offsets_[b] != nowhere) arena.device->free(at(offsets_[b]));
  }
  for (const Arena& arena : arenas_) {
    for (std::size_t p = 0; p < arena.pinned.size(); ++p) {
      if (arena.pinned[p] != 0)
        devices_.at(0)->unpin({arena.base + p * Device::pinned_piece, Device::pinned_piece});
    }
  }
}

std::int64_t Memories::on_device(const Arena& arena, const Buffer& buffer, TaskId task) const {
  try {
    return reinterpret_cast<std::int64_t>(
        arena.device->allocate(std::max<std::int64_t>(buffer.bytes, 1)));
  } catch (const MachineError& error) {
    throw MachineError(fmt::format("{}; {}", overfull(buffer, task), error.what()));
  }
}

std::int64_t Memories::on_host(Arena& arena, const Buffer& buffer) const {
  const auto offset = arena.gaps.take(buffer.bytes);
  if (!offset) {
    throw MachineError(fmt::format("pool {}: no gap of {} bytes among {} bytes of addresses",
                                   plan_.pools[index(buffer.pool)].name, buffer.bytes,
                                   arena.memory.bytes().size()));
  }
  if (!devices_.empty()) pin(arena, *offset, buffer.bytes);
  return *offset;
}

void Memories::pin(Arena& arena, std::int64_t offset, std::int64_t bytes) const {
  const auto piece = static_cast<std::int64_t>(Device::pinned_piece);
  const std::int64_t end = offset + std::max<std::int64_t>(bytes, 1);
  for (auto p = static_cast<std::size_t>(offset / piece);
       static_cast<std::int64_t>(p) * piece < end; ++p) {
    if (arena.pinned[p] != 0) continue;
    devices_.at(0)->pin({arena.base + p * Device::pinned_piece, Device::pinned_piece});
    arena.pinned[p] = 1;
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
  offsets_[index(id)] = arena.device != nullptr ? on_device(arena, buffer, task)
                        : has_memory(pool)      ? on_host(arena, buffer)
                                                : 0;
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
  Arena& arena = arenas_[index(buffer.pool)];
  if (arena.base != nullptr) arena.gaps.give_back(offsets_[index(id)], buffer.bytes);
  if (arena.device != nullptr) arena.device->free(at(offsets_[index(id)]));
  offsets_[index(id)] = nowhere;
}

std::span<std::byte> Memories::bytes_of(BufferId id) const {
  const Buffer& buffer = plan_.buffers[index(id)];
  const Arena& arena = arenas_[index(buffer.pool)];
  if (offsets_[index(id)] == nowhere) return {};
  if (arena.device != nullptr)
    return {at(offsets_[index(id)]), static_cast<std::size_t>(buffer.bytes)};
  if (arena.base == nullptr) return {};
  return {arena.base + offsets_[index(id)], static_cast<std::size_t>(whole_pages(buffer.bytes))};
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
