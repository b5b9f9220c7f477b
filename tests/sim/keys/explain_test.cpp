#include "sim/keys/explain.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "models/base/error.hpp"
#include "sim/keys/keys.hpp"
#include "sim/keys/words.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
namespace fs = std::filesystem;

namespace {

std::string refusal(const std::string& word) {
  try {
    explain(word);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("everything that is offered is explained", "[explain]") {
  const std::vector<std::string> words = explained_words();
  CHECK(words.size() > 300);
  for (const std::string& word : words) {
    INFO(word);
    CHECK_THAT(explain(word), Containing("docs/"));
  }
}

TEST_CASE("a key is explained with type, default, policies and where it is from", "[explain]") {
  const std::string text = explain("policy.optimizer.buffer_count");
  for (const char* part : {"pinned buffers per path and rank", "zero_infinity, mlp_offload",
                           "a whole number, 1 to 1000000", "left out  4", "DS buffer_count",
                           "policy: {optimizer: {name: zero_infinity, buffer_count: 8}}",
                           "--set policy.optimizer.buffer_count=8", "docs/scenario.md:"})
    CHECK_THAT(text, Containing(part));
}

TEST_CASE("a key is found by its path, its last name, and inside lists and named maps",
          "[explain]") {
  CHECK_THAT(explain("policy.optimizer"), Containing("mlp_offload") && Containing("buffer_count"));
  CHECK_THAT(explain("workload.layers[3].forward[0].gemm.m"), Containing("rows of the product"));
  CHECK_THAT(explain("machine.paths.array4.read_mixed"),
             Containing("--set 'machine.paths.array4.read_mixed=24.6 GB/s'"));
  CHECK_THAT(explain("adam_rate"), Containing("(parameters/s)"));
  CHECK_THAT(explain("mlp_offload"),
             Containing("a name of policy.optimizer") && Containing("exclusive"));
  CHECK_THAT(explain("gpu3.h2d"), Containing("from host memory to a GPU"));
  CHECK_THAT(explain("fits"), Containing("a field of --json"));
}

TEST_CASE("a word that is misspelt gets a suggestion", "[explain]") {
  CHECK_THAT(refusal("policy.optimizer.bufer_count"),
             Containing("did you mean 'policy.optimizer.buffer_count'?"));
  CHECK_THAT(refusal("exposd"), Containing("did you mean 'exposed'?"));
  CHECK_THAT(refusal("sub_grup_size"), Containing("did you mean 'sub_group_size'?"));
}

// The first cell of a row of the tables that name owners, resources and tasks.
TEST_CASE("every label of the golden reports is explained", "[explain]") {
  const std::regex header("^(Memory|Resource|Critical path|Phase) +(peak|busy|time) .*");
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(TIDEGATE_SOURCE_DIR "/tests/golden")) {
    std::ifstream file(entry.path());
    bool is_inside = false;
    for (std::string line; std::getline(file, line);) {
      const bool is_note = line.starts_with("Mean of") || line.starts_with("busy: ");
      if (line.empty() || is_note) is_inside = false;
      const bool is_row = is_inside && !line.starts_with("─");
      if (std::regex_match(line, header)) is_inside = true;
      if (!is_row) continue;
      const std::size_t from = line.find_first_not_of(' ');
      std::string label = line.substr(from, line.find("  ", from) - from);
      label = std::regex_replace(label, std::regex("^[0-9]+ others$"), "others");
      label = label.substr(0, label.find(" ("));
      // Names that a profile gives to its paths and ports.
      if (std::regex_match(
              label,
              std::regex("(nvme|pfs|drive|second|array[0-9*]+|plx[0-9*]+\\.[dh]2[hd])(, .*)?")))
        continue;
      if (label.find(", ") != std::string::npos) label = label.substr(0, label.find(", "));
      INFO(entry.path().filename().string() << ": " << line);
      CHECK(std::ranges::any_of(report_words(), [&](const Word& w) { return explains(w, label); }));
      ++count;
    }
  }
  CHECK(count > 100);
}

TEST_CASE("keys that --set takes, and values that they can only have", "[explain]") {
  const std::vector<std::string> keys = settable_keys();
  const auto has = [&](const char* key) { return std::ranges::find(keys, key) != keys.end(); };
  CHECK(has("policy.optimizer.buffer_count"));
  CHECK(has("machine.gpus.count"));
  CHECK(!has("workload.layers[].name"));
  CHECK(values_of("policy.optimizer.cache") == std::vector<std::string>{"true", "false"});
  CHECK(values_of("workload.dtype") == std::vector<std::string>{"bf16", "fp16", "fp32"});
  const std::vector<std::string> names = values_of("policy.parameters");
  CHECK(names == std::vector<std::string>{"resident", "host", "nvme"});
  CHECK(values_of("workload.sequence").empty());
}
