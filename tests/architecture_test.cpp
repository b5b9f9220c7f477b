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

namespace {

std::string without_comments_and_strings(std::string text) {
  static const std::regex noise(
      "//[^\n]*|/\\*[^]*?\\*/|\"(\\\\.|[^\"\\\\\n])*\"|'(\\\\.|[^'\\\\])'");
  return std::regex_replace(text, noise, " ");
}

// Types that a file defines for others to see: of a namespace, no template, no member.
std::set<std::string> types_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const std::string code = without_comments_and_strings(text.str());
  static const std::regex token(
      "namespace\\s*([\\w:]*)\\s*\\{|(template\\s*<[^;{}]*>\\s*)?\\b(struct|class|union|enum)\\s+"
      "(class\\s+)?([\\w:]+)(\\s+final)?\\s*(:[^;{}()=]*)?\\{|[{}]");
  struct Scope {
    bool is_namespace, is_hidden;
    std::string name;
  };
  std::vector<Scope> scopes;
  std::set<std::string> types;
  for (std::sregex_iterator m(code.begin(), code.end(), token), end; m != end; ++m) {
    const std::string found = m->str();
    if (found == "}") {
      if (!scopes.empty()) scopes.pop_back();
    } else if (found.starts_with("namespace")) {
      const std::string name = (*m)[1];
      scopes.push_back({true, name.empty(), name + "::"});
    } else {
      const std::string name = (*m)[5];
      const bool is_ours = !name.empty() && name.find(':') == std::string::npos && !(*m)[2].matched;
      const bool is_seen = std::ranges::all_of(
          scopes, [](const Scope& s) { return s.is_namespace && !s.is_hidden; });
      std::string full;
      for (const Scope& s : scopes) full += s.name;
      if (is_ours && is_seen) types.insert(full + name);
      scopes.push_back({false, false, ""});
    }
  }
  return types;
}

}  // namespace

// Two types of one name in one program are one to the linker, which keeps one of each template and
// inline function of them: one type's vector then grows by the other's size.
TEST_CASE("every type of a namespace is defined in one place", "[architecture]") {
  std::map<std::string, std::set<std::string>> places;
  for (const auto& [folder, uses] : libraries()) {
    for (const auto& entry : fs::directory_iterator(root / folder)) {
      const auto extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".hpp") continue;
      for (const std::string& type : types_of(entry.path()))
        places[type].insert(fs::relative(entry.path(), root).string());
    }
  }
  CHECK(places.size() > 500);
  CHECK(places["tidegate::PlanBuilder"] == std::set<std::string>{"sim/plan/plan.hpp"});
  for (const auto& [type, files] : places) {
    if (files.size() < 2) continue;
    std::string all;
    for (const std::string& file : files) all += file + " ";
    INFO(type << " in " << all);
    CHECK(files.size() == 1);
  }
}
