#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "validate/engine/device.hpp"
#include "validate/engine/files.hpp"

namespace tidegate {

/// How the files of one run come to GPU memory and leave it: straight where the machine can, else
/// through pinned host memory of the thread's own; and what of that a reader of the times has to
/// know, since a prediction takes the straight way.
class GpuFiles {
 public:
  GpuFiles() = default;
  /// `files` and `devices` outlive it.
  GpuFiles(const Plan& plan, const Files& files, const Devices& devices);

  /// Of an open file; null: through the host.
  DirectFile* of(int descriptor) const;
  /// Null when no file goes straight.
  const std::shared_ptr<DirectFiles>& library() const { return library_; }
  /// Bytes that went straight, as far as we can tell. From any thread.
  void count(std::int64_t bytes) { moved_ += bytes; }
  /// Empty when all bytes went as predicted.
  std::vector<std::string> remarks() const;

 private:
  std::shared_ptr<DirectFiles> library_;
  std::map<int, std::unique_ptr<DirectFile>> open_;  // by descriptor
  std::map<std::string, std::string> bounced_;       // folders, and why
  std::optional<std::int64_t> counted_before_;
  std::atomic<std::int64_t> moved_ = 0;

  void open(const Files& files, const FileKey& key, DirectFiles& library);
};

/// What to say of bytes that were to go straight; empty when nothing speaks against it. `counted`:
/// bytes that the driver saw meanwhile, whoever moved them, in whole MiB.
std::string direct_remark(FileWay way, std::int64_t moved, std::optional<std::int64_t> counted);

}  // namespace tidegate
