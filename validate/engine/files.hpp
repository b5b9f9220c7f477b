#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "calib/rig/file.hpp"
#include "calib/rig/io_queue.hpp"
#include "sim/plan/plan.hpp"
#include "validate/engine/gaps.hpp"

/// Where the bytes of a plan's file works lie: on each storage path a file without a name for each
/// rank, and in it a place for each thing that is written or read.
///
/// A plan says how many bytes a file work moves and not which. Works of one rank and path with the
/// same item (layer, sub-group, tensor) and the same size are taken to mean the same thing. Before
/// the run begins, the file is written over in full, since drives and file systems take longer for
/// the first write of a place than for the next (calib/storage: write_extend), and what is read
/// before it is written is put there, unless somebody else writes what the tasks mean
/// (sim/plan/meaning.hpp). A write goes to a free place and takes the old one's role when it is
/// over, so that nobody reads what is half written; readers of the old place finish in peace.
namespace tidegate {

/// Check values of pages of 4096 bytes.
std::uint64_t checksum(std::span<const std::byte> page);

struct FileKey {
  std::uint16_t path = 0, rank = 0;
  std::int32_t item = 0;
  std::int64_t bytes = 0;
  auto operator<=>(const FileKey&) const = default;
};
/// Of a task whose work is a FileIo.
FileKey file_key(const Plan& plan, TaskId task);

/// Pages in a file, with the check value of each.
struct Extent {
  std::int64_t offset = 0, bytes = 0;  ///< bytes: whole pages
  std::vector<std::uint64_t> checksums;
};

class Files {
 public:
  /// folders[i] of storage path i of the plan. Writes all files, and what is read first; with
  /// `is_meant`, that for tasks that mean nothing alone. Throws InputError when a folder is no
  /// place for that, and MachineError when writing fails.
  Files(const Plan& plan, const std::vector<std::string>& folders, bool is_meant = false);

  /// The last that was written whole, null when nothing was.
  std::shared_ptr<const Extent> newest(const FileKey& key);
  /// A free place; it is free again when nobody holds it.
  std::shared_ptr<Extent> fresh(const FileKey& key);
  void keep(const FileKey& key, std::shared_ptr<const Extent> extent);

  int descriptor(const FileKey& key) const;
  const std::string& folder(std::uint16_t path) const { return folders_[path]; }

 private:
  struct RankFile {
    explicit RankFile(rig::ScratchFile f) : file(std::move(f)) {}
    rig::ScratchFile file;
    std::mutex mutex;
    Gaps gaps{std::int64_t{1} << 50};
    std::map<FileKey, std::shared_ptr<const Extent>> newest;
  };
  using Owner = std::pair<std::uint16_t, std::uint16_t>;  // path and rank

  std::vector<std::string> folders_;
  std::map<Owner, std::shared_ptr<RankFile>> files_;

  RankFile& file_of(const FileKey& key) { return *files_.at({key.path, key.rank}); }
  static void write_all(const rig::ScratchFile& file, std::int64_t bytes);
  void write_first(const FileKey& key);
};

/// Gives every page of `bytes` a beginning of its own: no two writes of a run have equal pages.
/// `first_page` counts the pages of the same write that lie before.
void stamp(std::span<std::byte> bytes, std::uint64_t writer, std::uint64_t number,
           std::uint64_t first_page = 0);

}  // namespace tidegate
