#include <string>

#include "sim/graph/workload.hpp"

#include "tests/catch.hpp"

using namespace tidegate;

namespace {

std::string config(const std::string& name) {
  return std::string(TIDEGATE_SOURCE_DIR) + "/tests/data/hf_configs/" + name + ".json";
}

}  // namespace

// Totals as the published checkpoints print them.
TEST_CASE("parameter counts of published checkpoints are exact", "[parameters]") {
  const std::pair<const char*, std::int64_t> totals[] = {
      {"llama-2-7b", 6738415616},       {"llama-2-70b", 68976648192},
      {"llama-3.1-8b", 8030261248},     {"mistral-7b-v0.1", 7241732096},
      {"mixtral-8x7b-v0.1", 46702792704}, {"qwen2.5-3b", 3085938688},
      {"qwen2.5-7b", 7615616512},       {"qwen3-14b", 14768307200},
      {"opt-13b", 12853473280},         {"gpt2-xl", 1557611200},
      {"bloomz-7b1", 7069016064},       {"gpt-neox-20b", 20554567680},
      {"t5-3b", 2851598336},
  };
  for (const auto& [name, total] : totals) {
    INFO(name);
    CHECK(parameters_of(read_hugging_face(config(name))) == total);
  }
}
