#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/run/predict.hpp"
#include "tests/catch.hpp"
#include "validate/field.hpp"
#include "validate/published.hpp"

/// The reports of every scenario that ships, byte for byte as tests/golden holds them. A change
/// that moves a number or a word shows here first: `./dev bless` rewrites the files, and their diff
/// is the review. The revision and the commands to try next stay out: they change for other
/// reasons.

using namespace tidegate;
namespace fs = std::filesystem;

namespace {

const fs::path root = TIDEGATE_SOURCE_DIR;
const fs::path golden = root / "tests" / "golden";

bool is_blessing() {
  const char* const asked = std::getenv("TIDEGATE_BLESS");
  return asked != nullptr && std::string(asked) == "1";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Number and both forms of the first line that differs, or nothing.
std::string first_difference(const std::string& now, const std::string& then) {
  if (now == then) return "";
  const auto a = lines_of(now), b = lines_of(then);
  const auto [in_a, in_b] = std::ranges::mismatch(a, b);
  const auto line = [](const auto at, const auto& lines) {
    return at == lines.end() ? "(end)" : *at;
  };
  return "line " + std::to_string(in_a - a.begin() + 1) + "\n  golden: " + line(in_b, b) +
         "\n  now:    " + line(in_a, a);
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  INFO(path.string() << ": run ./dev bless and read the diff");
  REQUIRE(file.is_open());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void compare(const std::string& name, const std::string& now) {
  const fs::path path = golden / (name + ".txt");
  if (is_blessing()) {
    std::ofstream(path, std::ios::binary) << now;
    return;
  }
  const std::string difference = first_difference(now, text_of(path));
  INFO(path.string() << ": run ./dev bless and read the diff\n" << difference);
  CHECK(difference.empty());
}

// The block of the README behind `begin` is what a golden report holds from `skip` letters behind
// `from` to `to`.
void check_readme(const std::string& begin, const char* name, const std::string& from,
                  std::size_t skip, const std::string& to) {
  const std::string report = text_of(golden / (std::string(name) + ".txt"));
  const std::size_t first = report.find(from), last = report.find(to);
  REQUIRE(first != std::string::npos);
  REQUIRE(last != std::string::npos);
  const std::string shown = report.substr(first + skip, last - first - skip);
  const std::string end = "```\n";
  std::string readme = text_of(root / "README.md");
  REQUIRE(readme.find(begin) != std::string::npos);
  const std::size_t at = readme.find(begin) + begin.size(), until = readme.find(end, at);
  REQUIRE(until != std::string::npos);
  if (is_blessing()) {
    readme.replace(at, until - at, shown);
    std::ofstream(root / "README.md", std::ios::binary) << readme;
    return;
  }
  const std::string difference = first_difference(readme.substr(at, until - at), shown);
  INFO(difference);
  CHECK(difference.empty());
}

std::vector<fs::path> scenarios() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(root / "scenarios")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

TEST_CASE("every scenario that ships gives its golden report", "[golden]") {
  for (const fs::path& path : scenarios()) {
    Scenario scenario = load_scenario(path.string());
    Report report = predict(scenario).report;
    report.facts.revision = "REVISION";
    report.facts.next.clear();
    compare(path.stem().string(), to_text(report));
  }
}

TEST_CASE("the published runs give their golden table", "[golden]") {
  compare("published_brief", to_brief_text(run_published({})));
}

TEST_CASE("the public memory reports give their golden table", "[golden]") {
  compare("field", to_text(run_field({})));
}

TEST_CASE("the README shows what the program prints", "[golden]") {
  // From the verdict to the resources: no title, nothing behind them.
  check_readme("```text\n", "mlp_offload_70b", "\n\n", 2, "\nCritical path");
  // How good predictions of memory are: the summary, without the remarks.
  check_readme("of memory:\n\n```text\n", "field", "absolute error of", 0, "gpu_used is what");
}

TEST_CASE("every golden file belongs to a scenario", "[golden]") {
  std::vector<std::string> names = {"published_brief", "field"};
  for (const fs::path& path : scenarios()) names.push_back(path.stem().string());
  for (const auto& entry : fs::directory_iterator(golden)) {
    INFO(entry.path().string());
    CHECK(std::ranges::find(names, entry.path().stem().string()) != names.end());
  }
}

TEST_CASE("the first line that differs is said with its number", "[golden]") {
  CHECK(first_difference("a\nb\n", "a\nb\n").empty());
  CHECK(first_difference("a\nx\n", "a\nb\n") == "line 2\n  golden: b\n  now:    x");
  CHECK(first_difference("a\n", "a\nb\n") == "line 2\n  golden: b\n  now:    (end)");
}
