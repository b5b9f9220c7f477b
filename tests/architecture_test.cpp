#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.hpp"

namespace fs = std::filesystem;

namespace {

const fs::path root = TIDEGATE_SOURCE_DIR;

// build/libraries.txt, written by tidegate_library(): "folder: used folders".
std::map<std::string, std::set<std::string>> libraries() {
  std::map<std::string, std::set<std::string>> all;
  std::ifstream file(fs::path(TIDEGATE_BINARY_DIR) / "libraries.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string folder;
    std::getline(words, folder, ':');
    for (std::string used; words >> used;) all[folder].insert(used);
    all[folder].insert(folder);
  }
  return all;
}

struct Include {
  fs::path file;
  int line = 0;
  std::string target;
  bool is_ours = false;
};

std::vector<Include> includes_of(const fs::path& folder) {
  static const std::regex pattern("^\\s*#include\\s+([\"<])([^\">]+)[\">]");
  std::vector<Include> all;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".hpp" && extension != ".cu") continue;
    std::ifstream file(entry.path());
    int number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      std::smatch match;
      if (!std::regex_search(line, match, pattern)) continue;
      all.push_back({entry.path(), number, match[2], match[1] == "\""});
    }
  }
  return all;
}

std::string where(const Include& i) {
  return fs::relative(i.file, root).string() + ":" + std::to_string(i.line) + ": ";
}

}  // namespace

TEST_CASE("every include of ours is in its own library or one that it declares", "[architecture]") {
  const auto all = libraries();
  REQUIRE(all.size() > 5);
  for (const auto& [folder, uses] : all) {
    for (const Include& i : includes_of(root / folder)) {
      if (!i.is_ours) continue;
      const std::string target = fs::path(i.target).parent_path().string();
      INFO(where(i) << folder << " may not include " << i.target);
      CHECK(uses.contains(target));
    }
  }
}

TEST_CASE("heavy third-party headers stay out of our headers and in their libraries",
          "[architecture]") {
  // Header prefix → the libraries that may include it, in sources only.
  const std::map<std::string, std::set<std::string>> owners = {
      {"yaml-cpp/", {"models/base"}},
      {"boost/", {"sim/graph", "sim/plan"}},
      {"Eigen/", {"models", "calib/fit"}},
      {"nlohmann/",
       {"calib/measure", "calib/profile", "calib/run", "sim/deepspeed", "sim/graph", "sim/keys",
        "sim/planner", "sim/report", "sim/run", "sim/search", "validate", "validate/compare",
        "validate/execute", "validate/gpu_times", "validate/log", "validate/native",
        "validate/peer", "validate/suite"}},
      {"cuda", {"calib/cuda", "calib/cuda/shim"}},
      {"cublas", {"calib/cuda/shim"}},
      {"nccl", {"calib/cuda/shim"}},
      {"liburing", {"calib/rig"}},
      {"mpi", {"calib/cluster", "sim/ranks"}},
      {"cblas", {"calib/kernels"}},
      {"oneapi/", {"calib/kernels"}},
      {"simgrid", {}},
      {"CLI/", {}}};
  for (const auto& [folder, uses] : libraries()) {
    for (const Include& i : includes_of(root / folder)) {
      for (const auto& [prefix, allowed] : owners) {
        if (!i.target.starts_with(prefix)) continue;
        INFO(where(i) << i.target);
        CHECK(allowed.contains(folder));
        CHECK(i.file.extension() != ".hpp");
      }
    }
  }
}

TEST_CASE("the engine includes no device", "[architecture]") {
  for (const Include& i : includes_of(root / "sim/engine")) {
    INFO(where(i) << i.target);
    CHECK(i.target != "models/devices.hpp");
    const bool names_machine = i.target == "models/machine.hpp";
    const bool prices = i.file.filename() == "price.cpp" || i.file.filename() == "simulate.hpp";
    CHECK((!names_machine || prices));
  }
}
