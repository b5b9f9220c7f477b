#include "validate/execute/shelves.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "validate/train/arithmetic.hpp"

namespace tidegate {
namespace {

// Addresses, not memory: a page comes when it is first written.
constexpr std::size_t region_addresses = std::size_t{1} << 38;

std::int64_t aligned(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

Shelves::Key Shelves::key_of(const Access& at) {
  const auto [content, place] = train::place_of(at);
  return {place, content};
}

Shelves::Shelves(const Plan& plan, Mapping::Sharing sharing, train::RemoteMemory* gpu)
    : plan_(plan), memory_(region_addresses, sharing, "contents of the plan"), gpu_(gpu) {
  ensure(gpu == nullptr || sharing == Mapping::Sharing::own, "a GPU's memory is one process's");
  for (const Access& a : plan.meaning.accesses) keys_.push_back(key_of(a));
  std::ranges::sort(keys_);
  const auto doubles = std::ranges::unique(keys_);
  keys_.erase(doubles.begin(), doubles.end());
  const std::size_t rows = keys_.size(), rooms = plan.buffers.size();
  tables_ = Mapping(sizeof(Region) + rooms * sizeof(Room) + rows * sizeof(Row), sharing,
                    "contents of the plan");
  std::byte* at = tables_.bytes().data();
  region_ = new (at) Region{};
  at += sizeof(Region);
  rooms_ = reinterpret_cast<Room*>(at);
  for (std::size_t i = 0; i < rooms; ++i) new (rooms_ + i) Room{};
  rows_ = reinterpret_cast<Row*>(at + rooms * sizeof(Room));
  for (std::size_t i = 0; i < rows; ++i) new (rows_ + i) Row{};
}

Shelves::~Shelves() {
  for (std::byte* const at : standing_) gpu_->free(at);
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    if (is_remote(plan_.buffers[i].pool)) close(static_cast<BufferId>(i));
  }
}

void Shelves::open(BufferId buffer, std::span<std::byte> memory) {
  Room& room = rooms_[index(buffer)];
  room.size = plan_.buffers[index(buffer)].bytes;
  room.used = 0;
  const PoolId pool = plan_.buffers[index(buffer)].pool;
  std::byte* const base = is_remote(pool) ? remote(pool, room.size) : memory.data();
  room.base.store(base, std::memory_order_release);
}

void Shelves::close(BufferId buffer) {
  std::byte* const base = rooms_[index(buffer)].base.exchange(nullptr, std::memory_order_acq_rel);
  const auto first = std::ranges::lower_bound(keys_, Key{index(buffer), ContentId{0}});
  for (auto key = first; key != keys_.end() && key->first == index(buffer); ++key)
    rows_[key - keys_.begin()].is_there.store(false, std::memory_order_release);
  if (base != nullptr && is_remote(plan_.buffers[index(buffer)].pool)) gpu_->free(base);
}

Shelves::Row& Shelves::row_of(const Access& at) const {
  const auto found = std::ranges::lower_bound(keys_, key_of(at));
  ensure(found != keys_.end() && *found == key_of(at), "a place is one of the plan");
  return rows_[found - keys_.begin()];
}

std::byte* Shelves::remote(PoolId pool, std::int64_t bytes) const {
  try {
    return gpu_->allocate(std::max<std::int64_t>(bytes, 1));
  } catch (const MachineError& error) {
    throw MachineError(fmt::format("{} bytes of pool {} on the GPU: {}", bytes,
                                   plan_.pools[index(pool)].name, error.what()));
  }
}

std::byte* Shelves::beside(std::int64_t bytes) {
  const std::int64_t first = region_->used.fetch_add(aligned(bytes));
  if (first + bytes > static_cast<std::int64_t>(memory_.bytes().size()))
    throw MachineError("contents of the plan: no addresses are left");
  return memory_.bytes().data() + first;
}

Shelves::Shelf Shelves::standing(PoolId pool, std::int64_t bytes) {
  if (!is_remote(pool)) return {beside(bytes), false};
  std::byte* const address = remote(pool, bytes);
  const std::scoped_lock lock(mutex_);
  standing_.push_back(address);
  return {address, true};
}

// Null where a condition of the access does not hold.
Shelves::Shelf Shelves::place(const Access& at, std::int64_t bytes) {
  if (at.buffer == Access::standing) return standing(at.pool, bytes);
  Room& room = rooms_[index(at.buffer)];
  std::byte* const base = room.base.load(std::memory_order_acquire);
  if (base == nullptr) return {};
  const std::int64_t first = room.used.fetch_add(bytes);
  if (first + bytes <= room.size)
    return {base + first, is_remote(plan_.buffers[index(at.buffer)].pool)};
  region_->beside += bytes;
  return {beside(bytes), false};
}

void Shelves::put(const Access& at, std::span<const std::byte> bytes) {
  Row& row = row_of(at);
  const auto length = static_cast<std::int64_t>(bytes.size());
  if (!row.is_there.load(std::memory_order_acquire) || row.room < length) {
    const bool has_room = row.address != nullptr && row.room >= length;
    const bool is_open =
        at.buffer == Access::standing || rooms_[index(at.buffer)].base.load() != nullptr;
    const Shelf shelf = has_room && is_open ? Shelf{row.address, row.is_remote} : place(at, length);
    if (shelf.address == nullptr && !at.when.is_always()) return;
    if (shelf.address == nullptr) {
      throw std::logic_error("a task writes into a buffer that is gone: " +
                             to_text(plan_.meaning.content(at.content)));
    }
    if (!has_room) row.address = shelf.address, row.is_remote = shelf.is_remote, row.room = length;
  }
  if (length > 0 && row.is_remote) gpu_->put(bytes, row.address);
  if (length > 0 && !row.is_remote) std::memcpy(row.address, bytes.data(), bytes.size());
  row.length = length;
  row.is_there.store(true, std::memory_order_release);
}

std::optional<std::vector<std::byte>> Shelves::get(const Access& at) const {
  const Row& row = row_of(at);
  if (!row.is_there.load(std::memory_order_acquire)) return {};
  if (!row.is_remote) return std::vector<std::byte>(row.address, row.address + row.length);
  std::vector<std::byte> bytes(static_cast<std::size_t>(row.length));
  if (!bytes.empty()) gpu_->get(row.address, bytes);
  return bytes;
}

void Shelves::drop(const Access& at) {
  row_of(at).is_there.store(false, std::memory_order_release);
}

}  // namespace tidegate
