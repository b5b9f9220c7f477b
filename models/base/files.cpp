#include "models/base/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate {

namespace fs = std::filesystem;

namespace {

// Removes the temporary file unless it was renamed.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove(path_, ignored);
  }
  const std::string& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

// fsync of a file or a folder, by name; errno when it fails.
int synced(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  const int code = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  return code;
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// What a link stands for.
std::string target_of(const std::string& path) {
  std::error_code absent;
  const fs::path whole = fs::canonical(path, absent);
  return absent ? path : whole.string();
}

// A device or a pipe cannot be replaced by a file of that name.
bool is_written_in_place(const fs::file_status& status) {
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

}  // namespace

void write_atomically(const std::string& asked, const std::function<void(std::ostream&)>& write,
                      Durability durability) {
  const auto failed = [&asked](const char* what, int code) {
    return MachineError(fmt::format("{}: {}: {}", asked, what, std::strerror(code)));
  };
  std::error_code absent;
  const fs::file_status now = fs::status(asked, absent);
  if (is_written_in_place(now)) {
    errno = 0;
    std::ofstream file(asked, std::ios::binary);
    if (file) write(file);
    file.flush();
    if (!file) throw failed("cannot be written", errno);
    return;
  }
  const std::string path = fs::exists(now) ? target_of(asked) : asked;
  Temporary temporary(fmt::format("{}.{}.part", path, getpid()));
  errno = 0;
  std::ofstream file(temporary.path(), std::ios::binary);
  if (!file) throw failed("cannot be opened for writing", errno);
  write(file);
  file.flush();
  if (!file) throw failed("cannot be written", errno);
  file.close();
  const bool is_now = durability == Durability::now;
  if (const int code = is_now ? synced(temporary.path()) : 0)
    throw failed("cannot be flushed", code);
  std::error_code error;
  if (fs::is_regular_file(now)) fs::permissions(temporary.path(), now.permissions(), error);
  fs::rename(temporary.path(), path, error);
  if (error) throw failed("cannot be put in place", error.value());
  temporary.keep();
  if (const int code = is_now ? synced(folder_of(path)) : 0)
    throw failed("cannot be flushed in its folder", code);
}

}  // namespace tidegate
