#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "calib/measure/bench.hpp"
#include "calib/rig/file.hpp"
#include "calib/rig/host_buffer.hpp"
#include "calib/storage/content.hpp"
#include "models/work.hpp"

/// One storage path while it is measured: its files, written in full before anything is read, and
/// what may still be written to it.
namespace tidegate::calib {

class Target {
 public:
  /// `files` of setup.file_size in all, which are made by prepare. Throws InputError when the
  /// folder cannot be written.
  Target(const StorageTarget& path, const Setup& setup, std::int32_t files);

  /// Makes the files and writes every byte of them; measures how fast they are overwritten. Throws
  /// InputError when the folder, its space or the budget does not allow it. Does nothing the second
  /// time.
  void prepare();
  /// The files go, and the memory with them.
  void finish();
  bool is_prepared() const { return !files_.empty(); }

  const StorageTarget& path() const { return path_; }
  rig::Access access() const { return access_; }
  /// Why not by direct access; empty when it is.
  const std::string& why_buffered() const { return why_buffered_; }
  const Content& content() const { return content_; }
  std::span<const rig::ScratchFile> files() const { return files_; }
  std::int64_t file_size() const { return file_size_; }
  /// Content is keyed by position: of file f, f · file_size + offset.
  std::int64_t position(std::size_t file, std::int64_t offset) const;
  /// A file of the same folder and access, with nothing in it.
  rig::ScratchFile fresh_file() const { return rig::ScratchFile(path_.folder, access_); }
  /// Overwriting at full depth, as prepare saw it.
  BytesPerSecond write_rate() const { return write_rate_; }
  void set_write_rate(BytesPerSecond rate) { write_rate_ = rate; }

  /// Counts bytes that are about to be written. Throws InputError when the path's write budget does
  /// not hold them.
  void charge(std::int64_t bytes);
  std::int64_t written() const { return written_; }

  /// Memory for a direction, holding the content of position 0 and on; kept from call to call.
  std::span<std::byte> memory(Direction direction, std::size_t bytes,
                              rig::HostBuffer::Pages pages = rig::HostBuffer::Pages::huge);
  /// Where the last sequential stream of a direction stopped, so that the next goes on from there.
  std::int64_t& cursor(Direction direction) { return cursor_[direction == Direction::write]; }
  /// A random number, the next of a seeded sequence for the direction.
  std::uint64_t random(Direction direction);
  /// Where access is buffered: what we wrote reaches the drive and leaves the page cache.
  void forget_cache() const;

 private:
  StorageTarget path_;
  Content content_;
  rig::Access access_ = rig::Access::direct;
  std::string why_buffered_;
  std::int32_t file_count_;
  std::int64_t file_size_, budget_, written_ = 0;
  std::vector<rig::ScratchFile> files_;
  BytesPerSecond write_rate_;
  // By direction, then by pages.
  rig::HostBuffer memory_[2][2];
  std::int64_t cursor_[2] = {0, 0};
  std::uint64_t random_[2];
};

}  // namespace tidegate::calib
