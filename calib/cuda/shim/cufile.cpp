#include "calib/cuda/shim/cufile.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate::cuda {
namespace {

constexpr const char* stats_file = "/proc/driver/nvidia-fs/stats";

// CUfileDescr_t on Linux: kind, then a union as wide as a pointer, then an optional table.
struct FileDescription {
  int kind = 1;  // CU_FILE_HANDLE_TYPE_OPAQUE_FD
  union {
    int descriptor;
    void* handle;
  } file{};
  const void* operations = nullptr;
};

// CUfileDrvProps_t up to the feature flags; the rest is room that we do not read.
struct Properties {
  unsigned major = 0, minor = 0;
  std::size_t poll_threshold = 0, largest_direct = 0;
  unsigned status = 0, control = 0;
  unsigned features = 0;
  unsigned rest[61] = {};
};
constexpr unsigned p2p_feature = 1U << 4;       // CU_FILE_P2P_SUPPORTED
constexpr unsigned nvme_p2p_status = 1U << 11;  // CU_FILE_NVME_P2P_SUPPORTED, in older versions

std::optional<std::int64_t> number_after(const std::string& line, const std::string& key) {
  const auto at = line.find(key);
  if (at == std::string::npos) return {};
  std::istringstream rest(line.substr(at + key.size()));
  std::int64_t number = 0;
  if (!(rest >> number)) return {};
  return number;
}

}  // namespace

const char* name_of(GdsWay way) {
  switch (way) {
    case GdsWay::direct:
      return "direct";
    case GdsWay::compatibility:
      return "compatibility mode";
    case GdsWay::not_told:
      return "not told";
  }
  return "";
}

std::optional<NvidiaFsCounters> parse_nvidia_fs(const std::string& stats) {
  std::istringstream lines(stats);
  NvidiaFsCounters counters;
  bool has_reads = false, has_writes = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("IO stats") && line.find("Disabled") != std::string::npos) return {};
    if (const auto mib = number_after(line, "readMiB="); mib && line.starts_with("Reads")) {
      counters.read = *mib;
      has_reads = true;
    }
    if (const auto mib = number_after(line, "writeMiB="); mib && line.starts_with("Writes")) {
      counters.written = *mib;
      has_writes = true;
    }
  }
  if (!has_reads || !has_writes) return {};
  return counters;
}

std::optional<NvidiaFsCounters> nvidia_fs_counters() {
  std::ifstream file(stats_file);
  if (!file) return {};
  return parse_nvidia_fs({std::istreambuf_iterator<char>(file), {}});
}

GdsWay expected_way(const GdsDriver& driver) {
  if (driver.has_nvidia_fs && driver.counts) return GdsWay::direct;
  if (!driver.has_nvidia_fs && !driver.may_use_p2pdma) return GdsWay::compatibility;
  return GdsWay::not_told;
}

CuFile::CuFile() : library_({"libcufile.so.0", "/usr/local/cuda/lib64/libcufile.so.0"}) {
  library_.find(call_.open, {"cuFileDriverOpen"});
  library_.find(call_.close, {"cuFileDriverClose_v2", "cuFileDriverClose"});
  library_.find_optional(call_.version, "cuFileGetVersion");
  library_.find(call_.properties, {"cuFileDriverGetProperties"});
  library_.find(call_.register_file, {"cuFileHandleRegister"});
  library_.find(call_.deregister_file, {"cuFileHandleDeregister"});
  library_.find(call_.register_buffer, {"cuFileBufRegister"});
  library_.find(call_.deregister_buffer, {"cuFileBufDeregister"});
  library_.find(call_.read, {"cuFileRead"});
  library_.find(call_.write, {"cuFileWrite"});
  why_absent_ = library_.why_absent();
  if (!why_absent_.empty()) return;
  if (const Error error = call_.open(); error.code != 0) {
    why_absent_ = fmt::format("cuFileDriverOpen: error {} (CUDA {})", error.code, error.cuda);
  }
}

CuFile::~CuFile() {
  if (why_absent_.empty()) call_.close();
}

GdsDriver CuFile::driver() const {
  GdsDriver driver;
  driver.has_nvidia_fs = std::filesystem::exists(stats_file);
  driver.counts = nvidia_fs_counters().has_value();
  if (!why_absent_.empty()) return driver;
  if (call_.version != nullptr) call_.version(&driver.version);
  Properties properties;
  if (call_.properties(&properties).code == 0) {
    driver.may_use_p2pdma =
        (properties.features & p2p_feature) != 0 || (properties.status & nvme_p2p_status) != 0;
  } else {
    driver.may_use_p2pdma = true;  // Not told: then nothing is claimed.
  }
  return driver;
}

void* CuFile::open(int descriptor) const {
  FileDescription description;
  description.file.descriptor = descriptor;
  void* file = nullptr;
  if (const Error error = call_.register_file(&file, &description); error.code != 0) {
    throw MachineError(
        fmt::format("cuFileHandleRegister: error {} (CUDA {})", error.code, error.cuda));
  }
  return file;
}

void CuFile::close(void* file) const { call_.deregister_file(file); }

void CuFile::register_buffer(void* device_memory, std::size_t bytes) const {
  if (const Error error = call_.register_buffer(device_memory, bytes, 0); error.code != 0) {
    throw MachineError(fmt::format("cuFileBufRegister of {} bytes: error {} (CUDA {})", bytes,
                                   error.code, error.cuda));
  }
}

void CuFile::deregister_buffer(void* device_memory) const {
  call_.deregister_buffer(device_memory);
}

void CuFile::read(void* file, void* device_memory, std::size_t bytes, std::int64_t offset,
                  std::int64_t memory_offset) const {
  const ssize_t done = call_.read(file, device_memory, bytes, offset, memory_offset);
  if (done == static_cast<ssize_t>(bytes)) return;
  throw MachineError(fmt::format("cuFileRead of {} bytes at offset {}: returned {}{}", bytes,
                                 offset, done,
                                 done == -1 ? std::string(": ") + std::strerror(errno) : ""));
}

void CuFile::write(void* file, const void* device_memory, std::size_t bytes, std::int64_t offset,
                   std::int64_t memory_offset) const {
  const ssize_t done = call_.write(file, device_memory, bytes, offset, memory_offset);
  if (done == static_cast<ssize_t>(bytes)) return;
  throw MachineError(fmt::format("cuFileWrite of {} bytes at offset {}: returned {}{}", bytes,
                                 offset, done,
                                 done == -1 ? std::string(": ") + std::strerror(errno) : ""));
}

}  // namespace tidegate::cuda
