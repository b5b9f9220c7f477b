#include "calib/rig/file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/core.h>

#include "calib/rig/host_buffer.hpp"
#include "models/base/error.hpp"

namespace tidegate::rig {
namespace {

constexpr std::size_t page = 4096;

// Where O_TMPFILE is unknown: created under a name nobody else takes and unlinked at once.
int open_and_unlink(const std::string& folder, int flags) {
  static std::atomic<unsigned> count = 0;
  const std::string path = fmt::format("{}/.tidegate-{}-{}", folder, getpid(), count++);
  const int descriptor = open(path.c_str(), flags | O_CREAT | O_EXCL, 0600);
  if (descriptor >= 0) unlink(path.c_str());
  return descriptor;
}

int open_unnamed(const std::string& folder, Access access) {
  const int flags = O_RDWR | O_CLOEXEC | (access == Access::direct ? O_DIRECT : 0);
  const int descriptor = open(folder.c_str(), flags | O_TMPFILE, 0600);
  if (descriptor >= 0) return descriptor;
  const bool is_unknown = errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT;
  return is_unknown ? open_and_unlink(folder, flags) : descriptor;
}

[[noreturn]] void fail_to_open(const std::string& folder, int error) {
  const std::string text = fmt::format("{}: a file cannot be made: {}", folder, strerror(error));
  const bool is_theirs = error == EACCES || error == EROFS || error == EPERM || error == ENOTDIR ||
                         error == ENOSPC || error == EDQUOT;
  if (is_theirs) throw InputError(text + "; give a folder that you can write");
  throw MachineError(text);
}

// Extents that hold data, in bytes of [0, size); -1 when the file system does not say.
std::int64_t written_bytes(int descriptor, std::int64_t size) {
  constexpr std::uint32_t most = 256;
  std::vector<std::byte> memory(sizeof(fiemap) + most * sizeof(fiemap_extent));
  auto* map = reinterpret_cast<fiemap*>(memory.data());
  std::uint64_t from = 0, written = 0;
  const auto end = static_cast<std::uint64_t>(size);
  for (bool is_last = false; !is_last && from < end;) {
    std::ranges::fill(memory, std::byte{0});
    map->fm_start = from;
    map->fm_length = end - from;
    map->fm_flags = FIEMAP_FLAG_SYNC;  // blocks not yet placed on the drive are data too
    map->fm_extent_count = most;
    if (ioctl(descriptor, FS_IOC_FIEMAP, map) != 0) return -1;
    is_last = map->fm_mapped_extents == 0;
    for (std::uint32_t i = 0; i < map->fm_mapped_extents; ++i) {
      const fiemap_extent& extent = map->fm_extents[i];
      const std::uint64_t stop = std::min<std::uint64_t>(extent.fe_logical + extent.fe_length, end);
      const std::uint64_t start = std::max<std::uint64_t>(extent.fe_logical, from);
      const bool is_data = (extent.fe_flags & FIEMAP_EXTENT_UNWRITTEN) == 0;
      if (is_data && stop > start) written += stop - start;
      is_last = is_last || (extent.fe_flags & FIEMAP_EXTENT_LAST) != 0;
      from = std::max(from, stop);
    }
  }
  return static_cast<std::int64_t>(written);
}

}  // namespace

ScratchFile::ScratchFile(const std::string& folder, Access access)
    : access_(access), folder_(folder) {
  const FileSystem facts = file_system_of(folder);
  if (access == Access::direct && facts.in_memory) {
    throw InputError(fmt::format("{}: {}", folder, why_no_direct_access(folder)));
  }
  descriptor_ = open_unnamed(folder, access);
  if (descriptor_ >= 0) return;
  if (access == Access::direct && errno == EINVAL) {
    throw InputError(
        fmt::format("{}: {} takes no direct access; give a folder on a drive", folder, facts.type));
  }
  fail_to_open(folder, errno);
}

ScratchFile ScratchFile::beside(const ScratchFile& other) {
  ScratchFile file;
  file.access_ = other.access_;
  file.folder_ = other.folder_;
  file.descriptor_ = open_unnamed(other.folder_, other.access_);
  if (file.descriptor_ < 0) fail_to_open(other.folder_, errno);
  return file;
}

ScratchFile ScratchFile::existing(const std::string& path, Access access) {
  ScratchFile file;
  file.access_ = access;
  file.folder_ = path.substr(0, path.rfind('/'));
  file.descriptor_ =
      open(path.c_str(), O_RDWR | O_CLOEXEC | (access == Access::direct ? O_DIRECT : 0));
  if (file.descriptor_ >= 0) return file;
  throw MachineError(fmt::format("{}: cannot be opened: {}", path, strerror(errno)));
}

ScratchFile::~ScratchFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      access_(other.access_),
      folder_(std::move(other.folder_)) {}

ScratchFile& ScratchFile::operator=(ScratchFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(access_, other.access_);
  std::swap(folder_, other.folder_);
  return *this;
}

NamedFile::NamedFile(const std::string& folder) : folder_(folder) {
  std::random_device random;
  name_ = fmt::format(".tidegate-{:08x}{:08x}", random(), random());
  const int descriptor = open(path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) fail_to_open(folder, errno);
  close(descriptor);
}

NamedFile::~NamedFile() { unlink(path().c_str()); }

std::string why_no_direct_access(const std::string& folder) {
  const FileSystem facts = file_system_of(folder);
  // Newer kernels open files of tmpfs for direct access and go through the page cache all the same.
  if (facts.in_memory) return facts.type + " is memory, there is no drive to reach directly";
  const int descriptor = open_unnamed(folder, Access::direct);
  if (descriptor < 0) {
    if (errno != EINVAL) fail_to_open(folder, errno);
    return facts.type + " refuses to open files for direct access";
  }
  const HostBuffer block(page);
  const ssize_t moved = pwrite(descriptor, block.data(), page, 0);
  const int error = moved < 0 ? errno : 0;
  close(descriptor);
  if (moved == static_cast<ssize_t>(page)) return "";
  return fmt::format("{} does not write 4096 bytes by direct access: {}", facts.type,
                     error != 0 ? strerror(error) : "short write");
}

std::int64_t unwritten_bytes(const ScratchFile& file, std::int64_t size) {
  const std::int64_t written = written_bytes(file.descriptor(), size);
  return written < 0 ? -1 : size - written;
}

double resident_fraction(const ScratchFile& file, std::int64_t size) {
  if (size <= 0) return 0;
  const auto length = static_cast<std::size_t>(size);
  void* at = mmap(nullptr, length, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (at == MAP_FAILED) throw MachineError(fmt::format("mmap of a file: {}", strerror(errno)));
  std::vector<unsigned char> pages((length + page - 1) / page);
  const int result = mincore(at, length, pages.data());
  const int error = errno;
  munmap(at, length);
  if (result != 0) throw MachineError(fmt::format("mincore: {}", strerror(error)));
  const auto resident = std::ranges::count_if(pages, [](unsigned char p) { return (p & 1) != 0; });
  return static_cast<double>(resident) / static_cast<double>(pages.size());
}

void flush(const ScratchFile& file) {
  if (fdatasync(file.descriptor()) == 0) return;
  throw MachineError(fmt::format("fdatasync in {}: {}", file.folder(), strerror(errno)));
}

}  // namespace tidegate::rig
