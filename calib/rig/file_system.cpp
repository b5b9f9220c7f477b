#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <sstream>

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <fmt/core.h>

#include "calib/rig/file.hpp"
#include "calib/rig/system_text.hpp"
#include "models/base/error.hpp"

namespace tidegate::rig {
namespace {

namespace fs = std::filesystem;

struct stat status_of_folder(const std::string& folder) {
  struct stat status{};
  if (stat(folder.c_str(), &status) != 0) {
    throw InputError(fmt::format("{}: {}; give a folder that exists", folder, strerror(errno)));
  }
  if (S_ISBLK(status.st_mode)) {
    throw InputError(fmt::format(
        "{}: a block device, which is never opened; give a folder of a file system on it", folder));
  }
  if (!S_ISDIR(status.st_mode)) {
    throw InputError(fmt::format("{}: not a folder; give a folder", folder));
  }
  return status;
}

// mountinfo writes blanks and the like as "\040".
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>(std::strtol(text.substr(i + 1, 3).c_str(), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

struct Mount {
  std::string point, type, source, options;
};

// proc(5), mountinfo: id parent major:minor root point options optional… - type source options
bool read_mount(const std::string& line, Mount& mount) {
  const auto words = detail::words_of(line);
  std::size_t dash = 6;
  while (dash < words.size() && words[dash] != "-") ++dash;
  if (dash + 3 >= words.size()) return false;
  mount = {unescaped(words[4]), words[dash + 1], unescaped(words[dash + 2]),
           words[5] + "," + words[dash + 3]};
  return true;
}

bool lies_under(const std::string& path, const std::string& point) {
  if (point == "/") return true;
  if (!path.starts_with(point)) return false;
  return path.size() == point.size() || path[point.size()] == '/';
}

// The longest mount point above the path; of equal ones the last, which hides the others.
Mount mount_of(const std::string& path) {
  std::istringstream lines(detail::text_of("/proc/self/mountinfo"));
  Mount best, mount;
  for (std::string line; std::getline(lines, line);) {
    if (!read_mount(line, mount) || !lies_under(path, mount.point)) continue;
    if (mount.point.size() >= best.point.size()) best = mount;
  }
  return best;
}

// "vda" for 254:0; the whole drive for a partition.
std::string block_device(dev_t number) {
  std::error_code error;
  fs::path at =
      fs::canonical(fmt::format("/sys/dev/block/{}:{}", major(number), minor(number)), error);
  if (error) return "";
  if (fs::exists(at / "partition", error)) at = at.parent_path();
  return at.filename().string();
}

std::string device_behind(const struct stat& folder, const Mount& mount) {
  if (std::string device = block_device(folder.st_dev); !device.empty()) return device;
  // btrfs and its like number their files apart from the drive.
  struct stat source{};
  if (!mount.source.starts_with("/dev/")) return "";
  if (stat(mount.source.c_str(), &source) != 0 || !S_ISBLK(source.st_mode)) return "";
  return block_device(source.st_rdev);
}

struct statvfs space_of(const std::string& folder) {
  struct statvfs space{};
  if (statvfs(folder.c_str(), &space) != 0) {
    throw MachineError(fmt::format("statvfs of {}: {}", folder, strerror(errno)));
  }
  return space;
}

std::string magic_of(const std::string& folder) {
  struct statfs facts{};
  statfs(folder.c_str(), &facts);
  return fmt::format("0x{:x}", facts.f_type);
}

Bytes available(const struct statvfs& space) {
  return Bytes(static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize));
}

constexpr Bytes always_kept = Bytes(5. * (1 << 30));

}  // namespace

FileSystem file_system_of(const std::string& folder) {
  static const std::set<std::string> memory = {"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"};
  static const std::set<std::string> network = {
      "nfs",    "nfs4", "lustre",   "gpfs",      "beegfs",         "ceph",      "cifs", "smb3",
      "wekafs", "daos", "orangefs", "glusterfs", "fuse.glusterfs", "fuse.ceph", "9p",   "afs"};
  const struct stat status = status_of_folder(folder);
  std::error_code error;
  const fs::path path = fs::canonical(folder, error);
  const Mount mount = mount_of(error ? folder : path.string());
  const struct statvfs space = space_of(folder);
  FileSystem facts;
  facts.type = mount.type.empty() ? magic_of(folder) : mount.type;
  facts.mount_point = mount.point;
  facts.options = mount.options;
  facts.device = device_behind(status, mount);
  facts.total = Bytes(static_cast<double>(space.f_blocks) * static_cast<double>(space.f_frsize));
  facts.available = available(space);
  facts.in_memory = memory.contains(mount.type) || facts.device.starts_with("zram") ||
                    facts.device.starts_with("ram");
  facts.is_network = network.contains(mount.type);
  const auto block = fmt::format("/sys/block/{}/queue/logical_block_size", facts.device);
  facts.block = Bytes(
      static_cast<double>(detail::number_of(block, static_cast<std::int64_t>(space.f_bsize))));
  return facts;
}

void check_space(const std::string& folder, Bytes bytes, double keep) {
  status_of_folder(folder);
  const Bytes there = available(space_of(folder));
  const Bytes kept = std::max(keep * there, always_kept);
  if (there - bytes >= kept) return;
  throw InputError(fmt::format(
      "{}: {} more would leave less than {} of the {} available; write at most {} or free space",
      folder, to_text(bytes), to_text(kept), to_text(there),
      to_text(std::max(there - kept, Bytes(0)))));
}

}  // namespace tidegate::rig
