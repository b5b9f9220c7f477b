#pragma once

#include <optional>
#include <string>

#include "calib/cluster/shared_path.hpp"
#include "calib/storage/stream.hpp"

/// Files that one client writes and another reads. For calib/cluster alone.
///
/// What a client wrote itself it may still hold, in its page cache, in the cache of its file system
/// or by a lock that nobody asked back; another client's file it cannot. Consistency is that of
/// close-to-open: the writer flushes and closes before any reader opens.
namespace tidegate::calib {

/// The file of this client, under a name until the object goes.
class OfferedFile {
 public:
  /// Written in full, flushed and closed.
  OfferedFile(Target& own, std::int64_t size);
  const std::string& name() const { return file_.name(); }

 private:
  rig::NamedFile file_;
};

/// The file of another client while it is read.
class NeighbourFile {
 public:
  /// `seed` is that of the other's target, by which contents are told.
  NeighbourFile(const StorageTarget& path, const std::string& name, std::int64_t size,
                std::uint64_t seed);
  /// Goes on from where the last one stopped.
  StreamResult read(const StreamPlan& how);

 private:
  Target target_;  // for memory and contents; its own files are never made
  rig::ScratchFile file_;
  std::int64_t size_, from_ = 0;
};

}  // namespace tidegate::calib
