#include "validate/engine/gpu_files.hpp"

#include <set>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

std::set<FileKey> keys_on_gpus(const Plan& plan) {
  std::set<FileKey> keys;
  for (std::uint32_t t = 0; t < plan.size(); ++t) {
    const auto* io = std::get_if<FileIo>(&plan.work(TaskId{t}));
    if (io != nullptr && io->memory.tier == Tier::gpu) keys.insert(file_key(plan, TaskId{t}));
  }
  return keys;
}

std::string bounce_remark(const std::string& folder, const std::string& why) {
  return fmt::format(
      "Files in {} came to GPU memory and left it through pinned host memory ({}); the prediction "
      "takes the direct path.",
      folder, why);
}

}  // namespace

GpuFiles::GpuFiles(const Plan& plan, const Files& files, const Devices& devices) {
  if (devices.empty()) return;
  const std::set<FileKey> keys = keys_on_gpus(plan);
  if (keys.empty()) return;
  const std::string why =
      devices.files == nullptr ? "these devices have no direct files" : devices.files->why_absent();
  for (const FileKey& key : keys) {
    if (!why.empty()) {
      bounced_[files.folder(key.path)] = why;
    } else {
      open(files, key, *devices.files);
    }
  }
  if (open_.empty()) return;
  library_ = devices.files;
  counted_before_ = library_->counted();
}

void GpuFiles::open(const Files& files, const FileKey& key, DirectFiles& library) {
  const std::string& folder = files.folder(key.path);
  const int descriptor = files.descriptor(key);
  if (open_.contains(descriptor) || bounced_.contains(folder)) return;
  try {
    open_[descriptor] = library.open(descriptor);
  } catch (const MachineError& error) {
    open_.erase(descriptor);
    bounced_[folder] = error.what();
  }
}

DirectFile* GpuFiles::of(int descriptor) const {
  const auto found = open_.find(descriptor);
  return found == open_.end() ? nullptr : found->second.get();
}

std::vector<std::string> GpuFiles::remarks() const {
  std::vector<std::string> remarks;
  for (const auto& [folder, why] : bounced_) remarks.push_back(bounce_remark(folder, why));
  if (library_ == nullptr) return remarks;
  std::optional<std::int64_t> counted = library_->counted();
  if (counted && counted_before_) *counted -= *counted_before_;
  if (!counted_before_) counted.reset();
  const std::string remark = direct_remark(library_->way(), moved_, counted);
  if (!remark.empty()) remarks.push_back(remark);
  return remarks;
}

std::string direct_remark(FileWay way, std::int64_t moved, std::optional<std::int64_t> counted) {
  constexpr double mib = 1 << 20;
  if (way == FileWay::through_host) {
    return "cuFile works in compatibility mode: files came to GPU memory and left it through the "
           "host; the prediction takes the direct path.";
  }
  if (way == FileWay::not_told || !counted) {
    return "Nothing counts whether files came to GPU memory and left it past the host, as the "
           "prediction takes it: cuFile may have used its compatibility mode. To have nvidia-fs "
           "count: "
           "echo 1 > /sys/module/nvidia_fs/parameters/rw_stats_enabled, as root.";
  }
  // Counters are whole MiB, and others may use the driver: at least nine tenths of our bytes.
  const auto ours = static_cast<double>(moved), seen = static_cast<double>(*counted);
  if (seen + mib >= 0.9 * ours) return "";
  return fmt::format(
      "Of {:.1f} MiB between files and GPU memory the driver counted {:.1f} past the host; the "
      "prediction takes the direct path for all.",
      ours / mib, seen / mib);
}

}  // namespace tidegate
