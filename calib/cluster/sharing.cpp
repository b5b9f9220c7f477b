#include "calib/cluster/sharing.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/core.h>

#include "models/base/error.hpp"

namespace tidegate::calib {
namespace {

// A file that says its own name, and goes with the object.
class Sign {
 public:
  explicit Sign(const std::string& folder) {
    std::random_device random;
    name_ = fmt::format(".tidegate-shared-{:08x}{:08x}", random(), random());
    path_ = folder + "/" + name_;
    const int descriptor = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    is_there_ = descriptor >= 0;
    if (!is_there_) return;
    const ssize_t written = write(descriptor, name_.data(), name_.size());
    fsync(descriptor);
    close(descriptor);
    if (written != static_cast<ssize_t>(name_.size())) take_away();
  }
  ~Sign() { take_away(); }
  Sign(const Sign&) = delete;
  Sign& operator=(const Sign&) = delete;
  std::string name() const { return is_there_ ? name_ : ""; }

 private:
  void take_away() {
    if (is_there_) unlink(path_.c_str());
    is_there_ = false;
  }
  std::string name_, path_;
  bool is_there_ = false;
};

bool sees(const std::string& folder, const std::string& name) {
  const int descriptor = open((folder + "/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  std::array<char, 64> text{};
  const ssize_t length = read(descriptor, text.data(), text.size());
  close(descriptor);
  return length > 0 && name == std::string(text.data(), static_cast<std::size_t>(length));
}

// A network file system may show a new name a little later.
bool sees_soon(const std::string& folder, const std::string& name) {
  constexpr int tries = 4;
  for (int i = 0; i < tries; ++i) {
    if (sees(folder, name)) return true;
    if (i + 1 < tries) std::this_thread::sleep_for(std::chrono::milliseconds(100 << i));
  }
  return false;
}

Sharing sharing_of(Team& team, const std::string& folder) {
  std::unique_ptr<Sign> sign;
  if (team.rank() == 0) sign = std::make_unique<Sign>(folder);
  const std::string name = team.broadcast(sign ? sign->name() : "");
  if (name.empty()) return Sharing::none;
  const bool is_seen = sees_soon(folder, name);
  const bool by_another = team.any(team.rank() != 0 && is_seen);
  const bool misses_one = team.any(!is_seen);
  team.barrier();
  return !by_another ? Sharing::none : misses_one ? Sharing::some : Sharing::all;
}

}  // namespace

std::vector<Sharing> sharing_of(Team& team, std::span<const std::string> folders) {
  if (team.size() == 1) return std::vector<Sharing>(folders.size(), Sharing::none);
  const std::string count = team.broadcast(fmt::format("{}", folders.size()));
  if (team.any(count != fmt::format("{}", folders.size()))) {
    throw InputError("the processes of this run were given different numbers of --storage");
  }
  std::vector<Sharing> all;
  for (const std::string& folder : folders) all.push_back(sharing_of(team, folder));
  return all;
}

}  // namespace tidegate::calib
