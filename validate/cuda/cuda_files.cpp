#include "validate/cuda/cuda_files.hpp"

#include <mutex>
#include <optional>
#include <string>

#include <fcntl.h>

#include "calib/cuda/shim/cufile.hpp"
#include "calib/cuda/shim/handles.hpp"
#include "models/base/error.hpp"

namespace tidegate {
namespace {

FileWay way_of(cuda::GdsWay way) {
  switch (way) {
    case cuda::GdsWay::direct:
      return FileWay::direct;
    case cuda::GdsWay::compatibility:
      return FileWay::through_host;
    case cuda::GdsWay::not_told:
      return FileWay::not_told;
  }
  return FileWay::not_told;
}

class CudaFile final : public DirectFile {
 public:
  CudaFile(const cuda::CuFile& library, int descriptor)
      : library_(library), handle_(library.open(descriptor)) {}
  ~CudaFile() override { library_.close(handle_); }
  CudaFile(const CudaFile&) = delete;
  CudaFile& operator=(const CudaFile&) = delete;

  void read(std::int64_t offset, const AttachedPart& to) override {
    const cuda::OnDevice here(to.gpu);
    library_.read(handle_, to.memory.data(), to.bytes, offset, static_cast<std::int64_t>(to.at));
  }
  void write(std::int64_t offset, const AttachedPart& from) override {
    const cuda::OnDevice here(from.gpu);
    library_.write(handle_, from.memory.data(), from.bytes, offset,
                   static_cast<std::int64_t>(from.at));
  }

 private:
  const cuda::CuFile& library_;
  void* handle_;
};

class CudaFiles final : public DirectFiles {
 public:
  std::string why_absent() override { return library().why_absent(); }
  FileWay way() override { return way_of(cuda::expected_way(library().driver())); }
  std::optional<std::int64_t> counted() const override {
    const auto mib = cuda::nvidia_fs_counters();
    if (!mib) return std::nullopt;
    return (mib->read + mib->written) << 20;
  }
  // Others cuFile would take as well, and move in compatibility mode.
  std::unique_ptr<DirectFile> open(int descriptor) override {
    if ((fcntl(descriptor, F_GETFL) & O_DIRECT) == 0)
      throw MachineError("its file system has no direct access");
    return std::make_unique<CudaFile>(library(), descriptor);
  }
  void attach(std::uint16_t gpu, std::span<std::byte> memory) override {
    const cuda::OnDevice here(gpu);
    library().register_buffer(memory.data(), memory.size());
  }
  // After an error that the GPU keeps, every call fails, and what it held goes with the process.
  void detach(std::uint16_t gpu, std::span<std::byte> memory) override {
    try {
      const cuda::OnDevice here(gpu);
      library().deregister_buffer(memory.data());
    } catch (const MachineError&) {
    }
  }

 private:
  std::mutex mutex_;
  std::optional<cuda::CuFile> library_;

  const cuda::CuFile& library() {
    const std::lock_guard lock(mutex_);
    if (!library_) library_.emplace();
    return *library_;
  }
};

}  // namespace

std::shared_ptr<DirectFiles> cuda_files() { return std::make_shared<CudaFiles>(); }

}  // namespace tidegate
