// What RigWorker does with files.
#include <cmath>
#include <memory>

#include <fmt/core.h>

#include "models/base/error.hpp"
#include "validate/engine/kernels.hpp"
#include "validate/engine/rig_worker.hpp"

namespace tidegate {
namespace {

constexpr std::int64_t page = 4096;

std::span<std::byte> within(std::span<std::byte> bytes, const Slice& slice) {
  return bytes.subspan(static_cast<std::size_t>(slice.first),
                       static_cast<std::size_t>(slice.size()));
}

std::size_t pages_before(const Slice& slice) {
  return static_cast<std::size_t>(slice.first / page);
}

// Check values of whole pages that become `extent` from its page `first` on.
void sum_up(Extent& extent, std::size_t first, std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size() / page; ++i)
    extent.checksums[first + i] = checksum(bytes.subspan(i * page, page));
}

}  // namespace

std::shared_ptr<const Extent> RigWorker::newest(TaskId task) {
  const FileKey key = file_key(plan_, task);
  std::shared_ptr<const Extent> extent = files_.newest(key);
  if (extent) return extent;
  throw MachineError(fmt::format("task '{}' of rank {} reads from {} what nobody has written",
                                 plan_.label(task), plan_.task(task).rank,
                                 files_.folder(key.path)));
}

RigWorker::Part RigWorker::reading(TaskId task, const FileIo& io, Kit& kit) {
  const FileKey key = file_key(plan_, task);
  const std::shared_ptr<const Extent> extent = newest(task);
  std::span<std::byte> to = buffer_of(task, Effect::Kind::allocate, io.memory, io.bytes);
  if (to.empty()) to = kit.memory.bytes();
  return [this, task, key, &kit, extent, to](std::int64_t k, std::int64_t n) {
    const Slice s = slice(extent->bytes, k, n, page);
    load(task, key, *kit.queue, *extent, pages_before(s), within(to, s));
  };
}

RigWorker::Part RigWorker::writing(TaskId task, const FileIo&, Kit& kit) {
  const FileKey key = file_key(plan_, task);
  const std::shared_ptr<Extent> extent = files_.fresh(key);
  const std::uint64_t number = ++kit.written;
  return [this, task, &kit, key, extent, number](std::int64_t k, std::int64_t n) {
    const Slice s = slice(extent->bytes, k, n, page);
    const auto bytes = within(kit.memory.bytes(), s);
    mark(*extent, pages_before(s), bytes, kit, number);
    transfer(task, key, Direction::write, *kit.queue, extent->offset + s.first, bytes);
    if (k + 1 == n) files_.keep(key, extent);
  };
}

void RigWorker::store(TaskId task, const FileKey& key, rig::IoQueue& queue, Extent& extent,
                      std::span<std::byte> bytes) const {
  sum_up(extent, 0, bytes);
  transfer(task, key, Direction::write, queue, extent.offset, bytes);
}

void RigWorker::load(TaskId task, const FileKey& key, rig::IoQueue& queue, const Extent& extent,
                     std::size_t first_page, std::span<std::byte> bytes) const {
  const auto before = static_cast<std::int64_t>(first_page) * page;
  transfer(task, key, Direction::read, queue, extent.offset + before, bytes);
  if (rig_.checks_files) check(task, key, extent, first_page, bytes);
}

void RigWorker::transfer(TaskId task, const FileKey& key, Direction direction, rig::IoQueue& queue,
                         std::int64_t offset, std::span<std::byte> bytes) const {
  if (bytes.empty()) return;
  const auto* io = std::get_if<FileIo>(&plan_.work(task));
  const Bytes block = io == nullptr ? FileIo().block : io->block;
  const std::int64_t pages = std::max(page, whole_pages(static_cast<std::int64_t>(block.value())));
  try {
    rig::transfer(queue, direction, files_.descriptor(key), offset, bytes,
                  static_cast<std::size_t>(pages));
  } catch (const MachineError& error) {
    throw MachineError(fmt::format("task '{}' of rank {}, storage path {}: {}", plan_.label(task),
                                   plan_.task(task).rank, files_.folder(key.path), error.what()));
  }
}

// Of the pages from `first_page` on, those that will be checked, of the thread's file work
// `number`.
void RigWorker::mark(Extent& extent, std::size_t first_page, std::span<std::byte> bytes,
                     const Kit& kit, std::uint64_t number) const {
  const auto every = static_cast<std::size_t>(rig_.pages_per_check);
  for (std::size_t i = first_checked(first_page); i < bytes.size() / page; i += every) {
    const auto checked = bytes.subspan(i * page, page);
    stamp(checked, kit.number, number, first_page + i);
    sum_up(extent, first_page + i, checked);
  }
}

// Of the pages from `first_page` on, the first that is checked, counted from there.
std::size_t RigWorker::first_checked(std::size_t first_page) const {
  const auto every = static_cast<std::size_t>(rig_.pages_per_check);
  return (every - first_page % every) % every;
}

void RigWorker::check(TaskId task, const FileKey& key, const Extent& extent, std::size_t first_page,
                      std::span<const std::byte> bytes) const {
  const auto every = static_cast<std::size_t>(rig_.pages_per_check);
  for (std::size_t i = first_checked(first_page); i < bytes.size() / page; i += every) {
    if (checksum(bytes.subspan(i * page, page)) == extent.checksums[first_page + i]) continue;
    throw MachineError(
        fmt::format("task '{}' of rank {}, storage path {}: the 4096 bytes at offset {} are not "
                    "those that were written",
                    plan_.label(task), plan_.task(task).rank, files_.folder(key.path),
                    extent.offset + static_cast<std::int64_t>((first_page + i) * page)));
  }
}

}  // namespace tidegate
