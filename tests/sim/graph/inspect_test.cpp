#include "sim/graph/inspect.hpp"

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/sim/graph/networks.hpp"

using namespace tidegate;

namespace {

Workload of(const char* name) {
  return workload_of(
      read_hugging_face(std::string(TIDEGATE_SOURCE_DIR "/tests/data/hf_configs/") + name));
}

}  // namespace

TEST_CASE("inspection states exact parameters and each distinct layer once", "[inspect]") {
  const std::string text = inspect_text(of("mixtral-8x7b-v0.1.json"));
  CHECK_THAT(text, Containing("46,702,792,704"));
  CHECK_THAT(text, Containing("block.0 … block.31"));
  CHECK_THAT(text, Containing("2 of 8 experts"));
  CHECK_THAT(text, Containing("whole blocks"));
}

TEST_CASE("inspection as JSON carries the same numbers", "[inspect]") {
  const Workload workload = of("llama-3.1-8b.json");
  const LayerGraph graph = build_graph(workload);
  const auto json = nlohmann::json::parse(inspect_json(workload));
  CHECK(json["parameters"] == 8030261248);
  CHECK(json["tokens"] == 2048);
  CHECK(json["saved_bytes"] == graph.saved().value());
  CHECK(json["layers"].size() == 3);
  CHECK(json["layers"][1]["count"] == 32);
  CHECK(json["recompute"][2]["extra_flops"] == 32 * graph.layers[1].forward_flops().value());
  // 2 FLOPs per matrix parameter and token; the embedding has no GEMM, the attention core adds
  // 2·s·h per block (causal).
  const double matrices = 8030261248.0 - 128256.0 * 4096 - 65 * 4096;
  CHECK(json["forward_flops_per_token"].get<double>() ==
        Approx(2 * matrices + 32 * 2.0 * 2048 * 4096));
}

TEST_CASE("an encoder-decoder is inspected stack by stack", "[inspect]") {
  const auto json = nlohmann::json::parse(inspect_json(of("t5-3b.json")));
  CHECK(json["tokens"] == 512);
  // The first block of each stack owns a table, so that it differs from the rest.
  CHECK(json["layers"].size() == 8);
}
