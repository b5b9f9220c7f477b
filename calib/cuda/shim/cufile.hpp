#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

#include "calib/cuda/shim/shared_library.hpp"

/// cuFile (libcufile.so.0, GPUDirect Storage): files straight to and from GPU memory, or, silently,
/// through a bounce buffer in host memory ("compatibility mode"). Declared here after NVIDIA's
/// cuFile API reference; its header is not needed.
namespace tidegate::cuda {

/// Which way the bytes take.
enum class GdsWay { direct, compatibility, not_told };
const char* name_of(GdsWay way);

/// Counters of the nvidia-fs driver (/proc/driver/nvidia-fs/stats), MiB moved since it was loaded.
/// Nothing when the text does not hold them or counting is off (rw_stats_enabled).
struct NvidiaFsCounters {
  std::int64_t read = 0, written = 0;
};
std::optional<NvidiaFsCounters> parse_nvidia_fs(const std::string& stats);
/// Of this machine; nothing when the driver is not loaded.
std::optional<NvidiaFsCounters> nvidia_fs_counters();

/// What is known of the driver before any byte has moved.
struct GdsDriver {
  bool has_nvidia_fs = false;   ///< the kernel module is loaded
  bool may_use_p2pdma = false;  ///< cuFile can go direct without nvidia-fs
  bool counts = false;          ///< nvidia-fs counts bytes
  int version = 0;              ///< of cuFile, 1130 is 1.13
};
/// direct only when counters can prove it; compatibility when neither way of going direct is there.
GdsWay expected_way(const GdsDriver& driver);

/// The driver, open while this lives.
class CuFile {
 public:
  CuFile();
  ~CuFile();
  CuFile(const CuFile&) = delete;
  CuFile& operator=(const CuFile&) = delete;

  const std::string& why_absent() const { return why_absent_; }
  GdsDriver driver() const;

  /// A file known to cuFile. Throws MachineError with cuFile's code.
  void* open(int descriptor) const;
  void close(void* file) const;
  void register_buffer(void* device_memory, std::size_t bytes) const;
  void deregister_buffer(void* device_memory) const;
  /// All `bytes`, or MachineError.
  void read(void* file, void* device_memory, std::size_t bytes, std::int64_t offset,
            std::int64_t memory_offset) const;
  void write(void* file, const void* device_memory, std::size_t bytes, std::int64_t offset,
             std::int64_t memory_offset) const;

 private:
  struct Error {
    int code = 0, cuda = 0;
  };
  struct Functions {
    Error (*open)() = nullptr;
    Error (*close)() = nullptr;
    Error (*version)(int*) = nullptr;
    Error (*properties)(void*) = nullptr;
    Error (*register_file)(void**, void*) = nullptr;
    void (*deregister_file)(void*) = nullptr;
    Error (*register_buffer)(const void*, std::size_t, int) = nullptr;
    Error (*deregister_buffer)(const void*) = nullptr;
    ssize_t (*read)(void*, void*, std::size_t, off_t, off_t) = nullptr;
    ssize_t (*write)(void*, const void*, std::size_t, off_t, off_t) = nullptr;
  };
  SharedLibrary library_;
  Functions call_;
  std::string why_absent_;
};

}  // namespace tidegate::cuda
