#include "validate/engine/files.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "calib/rig/host_buffer.hpp"
#include "calib/rig/interrupt.hpp"
#include "models/base/error.hpp"

namespace tidegate {
namespace {

constexpr std::size_t page = 4096;

// Keys in the order of tasks, each with whether it is read before it is written.
struct Uses {
  std::map<FileKey, bool> read_first;
  std::map<std::uint16_t, double> bytes;  // by path
};

Uses uses_of(const Plan& plan, bool is_meant) {
  Uses uses;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    const auto* io = std::get_if<FileIo>(&plan.work(TaskId{t}));
    if (io == nullptr) continue;
    const FileKey key = file_key(plan, TaskId{t});
    const bool knows_bytes = is_meant && !plan.meaning.of(TaskId{t}).empty();
    const bool is_read = io->direction == Direction::read && !knows_bytes;
    if (!uses.read_first.try_emplace(key, is_read).second) continue;
    uses.bytes[key.path] += static_cast<double>(whole_pages(key.bytes));
  }
  return uses;
}

rig::ScratchFile open_scratch(const std::string& folder) {
  const bool is_direct = rig::why_no_direct_access(folder).empty();
  return {folder, is_direct ? rig::Access::direct : rig::Access::buffered};
}

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes) {
  // Four chains of FNV-1a over words, which hide each other's latency.
  std::uint64_t chains[4] = {1, 2, 3, 4};
  for (std::size_t i = 0; i + 32 <= bytes.size(); i += 32) {
    std::uint64_t words[4];
    std::memcpy(words, bytes.data() + i, sizeof words);
    for (std::size_t c = 0; c < 4; ++c) chains[c] = (chains[c] ^ words[c]) * 0x100000001b3ULL;
  }
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (const std::uint64_t chain : chains) sum = (sum ^ chain ^ (chain >> 29)) * 0x100000001b3ULL;
  return sum;
}

FileKey file_key(const Plan& plan, TaskId task) {
  const auto& io = std::get<FileIo>(plan.work(task));
  return {io.path, plan.task(task).rank, plan.task(task).item,
          static_cast<std::int64_t>(std::ceil(io.bytes.value()))};
}

void stamp(std::span<std::byte> bytes, std::uint64_t writer, std::uint64_t number,
           std::uint64_t first_page) {
  for (std::size_t i = 0; i + page <= bytes.size(); i += page) {
    const std::uint64_t mark[3] = {writer, number, first_page + i / page};
    std::memcpy(bytes.data() + i, mark, sizeof mark);
  }
}

Files::Files(const Plan& plan, const std::vector<std::string>& folders, bool is_meant)
    : folders_(folders) {
  const Uses uses = uses_of(plan, is_meant);
  for (const auto& [path, bytes] : uses.bytes) {
    if (path >= folders.size()) {
      throw InputError(fmt::format(
          "storage path {} of the machine has no folder; give one with --storage", path));
    }
    rig::check_space(folders[path], Bytes(2 * bytes));  // the old place and the new one
  }
  std::map<Owner, std::int64_t> sizes;
  for (const auto& [key, is_read_first] : uses.read_first) {
    sizes[{key.path, key.rank}] += 2 * whole_pages(key.bytes);
  }
  for (const auto& [owner, bytes] : sizes) {
    const auto file = std::make_shared<RankFile>(open_scratch(folders[owner.first]));
    write_all(file->file, bytes);
    files_[owner] = file;
  }
  for (const auto& [key, is_read_first] : uses.read_first) {
    if (is_read_first) write_first(key);
  }
}

void Files::write_all(const rig::ScratchFile& file, std::int64_t bytes) {
  constexpr std::int64_t piece = std::int64_t{16} << 20;
  const rig::HostBuffer buffer(static_cast<std::size_t>(std::min(piece, bytes)),
                               rig::HostBuffer::Pages::huge);
  const auto queue = rig::make_io_queue({.depth = 4});
  for (std::int64_t at = 0; at < bytes; at += piece) {
    rig::check_interrupt();
    const auto now = buffer.bytes().first(static_cast<std::size_t>(std::min(piece, bytes - at)));
    stamp(now, ~std::uint64_t{1}, static_cast<std::uint64_t>(at));
    rig::transfer(*queue, Direction::write, file.descriptor(), at, now, std::size_t{1} << 20);
  }
}

void Files::write_first(const FileKey& key) {
  const std::shared_ptr<Extent> extent = fresh(key);
  const rig::HostBuffer buffer(static_cast<std::size_t>(extent->bytes));
  stamp(buffer.bytes(), ~std::uint64_t{0}, static_cast<std::uint64_t>(extent->offset));
  for (std::size_t i = 0; i < extent->checksums.size(); ++i) {
    extent->checksums[i] = checksum(buffer.bytes().subspan(i * page, page));
  }
  const auto queue = rig::make_io_queue({.depth = 4});
  rig::transfer(*queue, Direction::write, descriptor(key), extent->offset, buffer.bytes(),
                std::size_t{1} << 20);
  keep(key, extent);
}

std::shared_ptr<const Extent> Files::newest(const FileKey& key) {
  RankFile& file = file_of(key);
  const std::lock_guard lock(file.mutex);
  const auto found = file.newest.find(key);
  return found == file.newest.end() ? nullptr : found->second;
}

std::shared_ptr<Extent> Files::fresh(const FileKey& key) {
  const std::shared_ptr<RankFile> file = files_.at({key.path, key.rank});
  const std::int64_t bytes = whole_pages(key.bytes);
  const std::lock_guard lock(file->mutex);
  const auto offset = file->gaps.take(bytes);
  ensure(offset.has_value(), "a file has room without end");
  auto* extent = new Extent{*offset, bytes, {}};
  extent->checksums.resize(static_cast<std::size_t>(bytes) / page);
  return {extent, [owner = std::weak_ptr(file)](Extent* e) {
            const std::unique_ptr<Extent> owned(e);
            const std::shared_ptr<RankFile> still_there = owner.lock();
            if (!still_there) return;
            const std::lock_guard again(still_there->mutex);
            still_there->gaps.give_back(e->offset, e->bytes);
          }};
}

void Files::keep(const FileKey& key, std::shared_ptr<const Extent> extent) {
  RankFile& file = file_of(key);
  {
    const std::lock_guard lock(file.mutex);
    file.newest[key].swap(extent);
  }  // what was there before goes without the lock that it asks for
}

int Files::descriptor(const FileKey& key) const {
  return files_.at({key.path, key.rank})->file.descriptor();
}

}  // namespace tidegate
