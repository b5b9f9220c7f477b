#include "calib/storage/target.hpp"

#include <algorithm>

#include <fcntl.h>

#include <fmt/core.h>

#include "calib/storage/stream.hpp"
#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

constexpr std::int64_t block = std::int64_t{1} << 20;
constexpr std::size_t depth = 16;

std::int64_t whole_blocks(Bytes bytes, std::int32_t files) {
  return static_cast<std::int64_t>(bytes.value()) / files / block * block;
}

}  // namespace

Target::Target(const StorageTarget& path, const Setup& setup, std::int32_t files)
    : path_(path),
      content_(setup.seed),
      file_count_(files),
      file_size_(whole_blocks(setup.file_size, files)),
      budget_(static_cast<std::int64_t>(setup.write_budget.value())),
      random_{setup.seed, ~setup.seed} {
  why_buffered_ = rig::why_no_direct_access(path_.folder);
  access_ = why_buffered_.empty() ? rig::Access::direct : rig::Access::buffered;
}

void Target::prepare() {
  if (is_prepared()) return;
  if (file_size_ < 4 * block) {
    throw InputError(fmt::format("{}: files of {} are too small to measure; give at least {}",
                                 path_.name, to_text(Bytes(static_cast<double>(file_size_))),
                                 to_text(Bytes(4. * block * file_count_))));
  }
  rig::check_space(path_.folder, Bytes(static_cast<double>(file_size_ * file_count_)));
  for (std::int32_t i = 0; i < file_count_; ++i) {
    files_.emplace_back(path_.folder, access_);
    fill_file(*this, static_cast<std::size_t>(i));
  }
  // The second time the same blocks are written is an overwrite.
  const StreamPlan plan{.direction = Direction::write,
                        .block = block,
                        .depth = depth,
                        .most_bytes = std::min<std::int64_t>(file_size_, 64 * block)};
  const StreamResult overwritten = stream(*this, plan);
  write_rate_ = Bytes(static_cast<double>(overwritten.bytes)) / overwritten.elapsed;
}

void Target::finish() {
  files_.clear();
  for (auto& direction : memory_) {
    for (rig::HostBuffer& memory : direction) memory = rig::HostBuffer();
  }
}

std::int64_t Target::position(std::size_t file, std::int64_t offset) const {
  return static_cast<std::int64_t>(file) * file_size_ + offset;
}

void Target::charge(std::int64_t bytes) {
  if (written_ + bytes > budget_) {
    throw InputError(fmt::format(
        "{}: the write budget of {} is used up; give a larger one, smaller files or fewer rows",
        path_.name, to_text(Bytes(static_cast<double>(budget_)))));
  }
  written_ += bytes;
}

std::span<std::byte> Target::memory(Direction direction, std::size_t bytes,
                                    rig::HostBuffer::Pages pages) {
  rig::HostBuffer& memory =
      memory_[direction == Direction::write][pages == rig::HostBuffer::Pages::huge];
  if (memory.size() < bytes) {
    memory = rig::HostBuffer();
    memory = rig::HostBuffer(bytes, pages);
    content_.fill(memory.bytes(), 0);
  }
  return memory.bytes().first(bytes);
}

std::uint64_t Target::random(Direction direction) {
  std::uint64_t& state = random_[direction == Direction::write];
  state += 0x9E3779B97F4A7C15ULL;
  return mixed(state);
}

void Target::forget_cache() const {
  if (access_ == rig::Access::direct) return;
  for (const rig::ScratchFile& file : files_) {
    rig::flush(file);
    posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

}  // namespace tidegate::calib
