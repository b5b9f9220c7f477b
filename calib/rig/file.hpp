#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.hpp"

/// Files for measuring and for offloaded bytes, in folders that the user named.
namespace tidegate::rig {

/// What lies under a folder.
struct FileSystem {
  std::string type;  ///< ext4, xfs, tmpfs, nfs, lustre, …; "0x…" when unknown
  std::string mount_point;
  std::string device;   ///< as the kernel names it, "vda"; empty when no block device is behind it
  std::string options;  ///< of the mount
  Bytes total, available;   ///< available to this user
  Bytes block;              ///< logical block of the device, the unit of direct access
  bool in_memory = false;   ///< tmpfs, ramfs: no drive at all
  bool is_network = false;  ///< nfs, lustre, gpfs, beegfs, ceph, …
};
/// Throws InputError for what is no folder: a missing path, a file, a block device (which is never
/// opened).
FileSystem file_system_of(const std::string& folder);

enum class Access : std::uint8_t { direct, buffered };

/// A file without a name: O_TMPFILE where the file system has it, else created and unlinked at
/// once, so that not even SIGKILL leaves it behind. Move-only.
///
/// Direct access needs offsets, lengths and addresses that are multiples of 4096 here, whatever the
/// device would take.
class ScratchFile {
 public:
  /// Reserves nothing: the caller writes every byte (unwritten blocks read fast and false). Throws
  /// InputError when the folder cannot be written or does not take direct access, MachineError when
  /// the system fails otherwise.
  ScratchFile(const std::string& folder, Access access);
  /// A new file in the same folder for the same access, without asking the folder again.
  static ScratchFile beside(const ScratchFile& other);
  /// A file that is there, as what a client of a network file system opens after another has closed
  /// it. Throws MachineError.
  static ScratchFile existing(const std::string& path, Access access);
  ~ScratchFile();
  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&& other) noexcept;

  int descriptor() const { return descriptor_; }
  Access access() const { return access_; }
  const std::string& folder() const { return folder_; }

 private:
  ScratchFile() = default;
  int descriptor_ = -1;
  Access access_ = Access::direct;
  std::string folder_;
};

/// An empty file with a name, for other processes to open; it goes with the object. Unlike files
/// without a name, SIGKILL leaves it behind. Throws InputError when the folder cannot be written.
class NamedFile {
 public:
  explicit NamedFile(const std::string& folder);
  ~NamedFile();
  NamedFile(const NamedFile&) = delete;
  NamedFile& operator=(const NamedFile&) = delete;
  /// Without the folder, which another node may have mounted elsewhere.
  const std::string& name() const { return name_; }
  std::string path() const { return folder_ + "/" + name_; }

 private:
  std::string folder_, name_;
};

/// Where direct access is refused (tmpfs, some network file systems): the reason; empty when it
/// works.
std::string why_no_direct_access(const std::string& folder);

/// Throws InputError when `bytes` more in `folder` would leave less than `keep` of the space that
/// is available to this user, or less than 5 GiB.
void check_space(const std::string& folder, Bytes bytes, double keep = 0.1);

/// Bytes of the file's range that were never written (FIEMAP: unwritten or no extent at all). -1
/// when the file system cannot say.
std::int64_t unwritten_bytes(const ScratchFile& file, std::int64_t size);
/// Part of the file's pages that lie in the page cache, by mincore.
double resident_fraction(const ScratchFile& file, std::int64_t size);
/// fdatasync; throws MachineError.
void flush(const ScratchFile& file);

}  // namespace tidegate::rig
