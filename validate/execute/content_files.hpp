#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "calib/rig/host_buffer.hpp"
#include "validate/engine/rig_worker.hpp"
#include "validate/train/arithmetic.hpp"

/// Contents that a plan keeps on storage paths: in the files of the rig, and nowhere else.
///
/// What a task puts there goes to a place of its own in one write, as large as the plan says the
/// write is; what a task reads from there is read from the file, whole pages, before its deeds.
/// Every page is checked against what was written.
namespace tidegate {

class ContentFiles {
 public:
  /// Both outlive it.
  ContentFiles(const Plan& plan, RigWorker& rig) : plan_(plan), rig_(rig) {}

  /// Reads what the deeds of a task read from storage paths, if it is there.
  void bring(TaskId task, rig::IoQueue* queue, rig::HostBuffer& pages);
  /// Writes what they have put.
  void take_away(TaskId task, rig::IoQueue* queue, rig::HostBuffer& pages);

  /// Of a task between the two. What a deed puts the next one of the task gets.
  void put(TaskId task, const Access& at, std::span<const std::byte> bytes);
  std::optional<std::vector<std::byte>> get(TaskId task, const Access& at);
  void drop(const Access& at);
  void free(BufferId buffer);

  /// Bytes that the files of this process have moved, whole pages.
  std::int64_t read() const { return read_; }
  std::int64_t written() const { return written_; }

 private:
  using Key = std::pair<std::uint64_t, ContentId>;  // buffer or pool first
  struct Kept {
    FileKey file;
    std::shared_ptr<const Extent> extent;
    std::int64_t first = 0, length = 0;  // of the extent
  };
  struct Put {
    Key key;
    FileKey file;
    std::vector<std::byte> bytes;
  };
  struct Range {  // whole pages of an extent
    Kept in;
    std::size_t first, last;
    std::size_t to;  // their place in memory
    std::size_t end() const { return to + last - first; }
  };
  struct UnderWay {
    std::map<Key, std::vector<std::byte>> brought;
    std::vector<Put> puts;
  };

  const Plan& plan_;
  RigWorker& rig_;
  std::mutex mutex_;
  std::map<Key, Kept> kept_;
  std::map<TaskId, UnderWay> under_way_;
  std::atomic<std::int64_t> read_ = 0, written_ = 0;

  static Key key_of(const Access& at);
  FileKey file_of(const Access& at) const;
  std::map<Key, Kept> wanted(TaskId task);
  static std::vector<Range> ranges_of(const std::map<Key, Kept>& all);
  static std::size_t place_in(std::span<const Range> ranges, const Kept& kept);
  void write(TaskId task, std::span<const Put> puts, rig::IoQueue& queue, rig::HostBuffer& pages);
};

}  // namespace tidegate
