#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <stdio.h>

#include <fmt/core.h>

#include "models/base/files.hpp"
#include "validate/peer/peer.hpp"

namespace tidegate {
namespace {

namespace fs = std::filesystem;

std::string script() {
  const std::string path = std::string(TIDEGATE_DATA_DIR) + "/validate/peer/train.py";
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) throw MachineError(path + ": cannot be read; it ships with the program");
  return text.str();
}

// A folder beside the one asked for, removed with all it holds unless it was renamed.
class Staged {
 public:
  explicit Staged(const fs::path& target) {
    std::string name = target.string() + ".XXXXXX";
    if (::mkdtemp(name.data()) == nullptr)
      throw MachineError(fmt::format("{}: cannot be made: {}", target.string(), strerror(errno)));
    path_ = name;
  }
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;
  ~Staged() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  void become(const fs::path& target) {
    fs::permissions(path_, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                               fs::perms::others_read | fs::perms::others_exec);
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) != 0)
      throw MachineError(fmt::format("{}: cannot be made: {}", target.string(), strerror(errno)));
    path_.clear();
  }

 private:
  fs::path path_;
};

}  // namespace

void write_peer(const std::string& folder, const PeerFiles& files) {
  fs::path target = fs::absolute(folder).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  std::error_code error;  // what cannot be looked at cannot be made, and mkdtemp says why
  if (fs::exists(fs::symlink_status(target, error)))
    throw InputError(
        fmt::format("--out {}: exists, and nothing is overwritten; name a new folder", folder));
  Staged staged(target);
  const auto write = [&](const char* name, const std::string& text) {
    write_atomically((staged.path() / name).string(), [&](std::ostream& out) { out << text; });
  };
  write("train.py", script());
  write("scenario.json", files.scenario);
  write("ds_config.json", files.config);
  staged.become(target);
}

}  // namespace tidegate
