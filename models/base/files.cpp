#include "models/base/files.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

// Removes the temporary file unless it was renamed.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
  }
  const std::string& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

}  // namespace

void write_atomically(const std::string& path, const std::function<void(std::ostream&)>& write) {
  const auto failed = [&path](const char* what, int code) {
    return MachineError(fmt::format("{}: {}: {}", path, what, std::strerror(code)));
  };
  Temporary temporary(fmt::format("{}.{}.part", path, getpid()));
  errno = 0;
  std::ofstream file(temporary.path(), std::ios::binary);
  if (!file) throw failed("cannot be opened for writing", errno);
  write(file);
  file.flush();
  if (!file) throw failed("cannot be written", errno);
  file.close();
  std::error_code error;
  std::filesystem::rename(temporary.path(), path, error);
  if (error) throw failed("cannot be put in place", error.value());
  temporary.keep();
}

}  // namespace tidegate
