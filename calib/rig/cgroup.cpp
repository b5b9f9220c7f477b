#include "calib/rig/cgroup.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "calib/rig/system_text.hpp"

namespace tidegate::rig::detail {
namespace {

namespace fs = std::filesystem;

struct Group {
  fs::path root, folder;  // of version 2, or of the cpu controller of version 1; empty: none
  bool is_version_2 = false;
};

bool names(const std::string& controllers, const std::string& wanted) {
  std::istringstream list(controllers);
  for (std::string one; std::getline(list, one, ',');) {
    if (one == wanted) return true;
  }
  return false;
}

// cgroups(7), /proc/[pid]/cgroup: "number:controllers:path"; controllers are empty in version 2. In
// a container the path may not exist below the root that is visible: then the root is ours.
Group group_of() {
  std::istringstream lines(text_of("/proc/self/cgroup"));
  Group best;
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_2 = controllers.empty();
    if (!is_2 && !names(controllers, "cpu")) continue;
    const fs::path root = is_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    const char* file = is_2 ? "cpu.stat" : "cpu.cfs_quota_us";
    std::error_code error;
    fs::path folder = root / fs::path(line.substr(second + 1)).relative_path();
    if (!fs::exists(folder / file, error)) folder = root;
    if (fs::exists(folder / file, error)) best = {root, folder, is_2};
  }
  return best;
}

double quota_of(const fs::path& folder, bool is_version_2) {
  if (is_version_2) {
    const auto words = words_of(line_of(folder / "cpu.max"));
    if (words.size() != 2 || words[0] == "max") return 0;
    return std::strtod(words[0].c_str(), nullptr) / std::strtod(words[1].c_str(), nullptr);
  }
  const auto quota = number_of(folder / "cpu.cfs_quota_us", -1);
  const auto period = number_of(folder / "cpu.cfs_period_us", 100000);
  return quota > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0;
}

}  // namespace

std::int64_t throttled_periods() {
  const Group group = group_of();
  if (group.folder.empty()) return -1;
  const std::string value = value_of(text_of(group.folder / "cpu.stat"), "nr_throttled");
  return value.empty() ? -1 : std::strtoll(value.c_str(), nullptr, 10);
}

double quota_cores() {
  const Group group = group_of();
  double tightest = 0;
  if (group.folder.empty()) return tightest;
  for (fs::path at = group.folder;; at = at.parent_path()) {
    const double quota = quota_of(at, group.is_version_2);
    if (quota > 0) tightest = tightest > 0 ? std::min(tightest, quota) : quota;
    if (at == group.root || at == at.parent_path()) return tightest;
  }
}

}  // namespace tidegate::rig::detail
