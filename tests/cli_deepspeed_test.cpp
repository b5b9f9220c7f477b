#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

/// Starting without a scenario file, and leaving with a file that an engine reads.

using nlohmann::json;
using tidegate::test::Finished;
using tidegate::test::TemporaryFolder;

namespace {

const std::string source = TIDEGATE_SOURCE_DIR;
const std::string network = source + "/tests/data/hf_configs/qwen2.5-3b.json";
const std::string file = source + "/tests/data/ds_configs/zero2_offload_qwen2.5-3b.json";

Finished tidegate_with(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TIDEGATE_EXECUTABLE);
  return tidegate::test::run(arguments);
}

Finished start(std::vector<std::string> more) {
  more.insert(more.begin(), {"simulate", "--no-fixes", "--iterations", "1"});
  return tidegate_with(more);
}

json report(std::vector<std::string> more) {
  more.emplace_back("--json");
  const Finished run = start(more);
  INFO(run.err);
  REQUIRE(run.code == 0);
  return json::parse(run.out);
}

void check_wrong(const std::vector<std::string>& flags, const std::string& message) {
  const Finished run = start(flags);
  INFO(run.err);
  CHECK(run.code == 2);
  CHECK(run.out.empty());
  CHECK_THAT(run.err, Containing(message));
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// train_batch_size of the file is 8: of 2 ranks 4 sequences each, with 512 tokens 4096 in all.
const std::vector<std::string> flags = {"--hf",       network,    "--deepspeed", file,
                                        "--seq",      "512",      "--ranks",     "2",
                                        "--hardware", "a100_8gpu"};

}  // namespace

TEST_CASE("a network, a node and a ds_config.json are enough to start", "[cli]") {
  const json r = report(flags);
  CHECK(r["scenario"] == "qwen2.5-3b");
  CHECK(r["gpus"] == 2);
  CHECK(r["tokens_per_iteration"] == 4096);
  CHECK_THAT(r["policy"].get<std::string>(), Containing("ZeRO-2; ZeRO-Offload"));
  const auto remark = [&](const std::string& key) {
    for (const json& one : r["engine_remarks"]) {
      if (one["key"].get<std::string>().find(key) != std::string::npos) return one;
    }
    return json();
  };
  CHECK(remark("overlap_comm")["kind"] == "not simulated");
  CHECK(remark("activations")["kind"] == "filled");
  CHECK_THAT(remark("wall_clock_breakdown")["at"].get<std::string>(),
             Containing("zero2_offload_qwen2.5-3b.json:"));
}

TEST_CASE("the report says what DeepSpeed will make of the file, and how to start again", "[cli]") {
  const Finished run = start(flags);
  CHECK_THAT(run.out, Containing("What DeepSpeed will make of this file\n  - "));
  CHECK_THAT(run.out, Containing("Next\n  tidegate simulate --hf ") &&
                          Containing(" --hardware a100_8gpu --seq 512 --ranks 2 --set "));
}

TEST_CASE("without a ds_config.json a network is trained on the GPUs", "[cli]") {
  const json r = report({"--hf", network, "--hardware", "a100_8gpu", "--seq", "512", "--ranks", "1",
                         "--micro-batch", "2", "--accumulation", "3"});
  CHECK(r["tokens_per_iteration"] == 3072);  // 512 · 2 · 3
  CHECK(r["engine_remarks"].empty());
}

TEST_CASE("a ds_config.json replaces the policy of a scenario and keeps its activations", "[cli]") {
  const json r =
      report({source + "/scenarios/llama31_8b_h200.yaml", "--deepspeed", file, "--set", "ranks=2"});
  CHECK_THAT(r["policy"].get<std::string>(), Containing("ZeRO-2; ZeRO-Offload"));
  const json before = report({source + "/scenarios/llama31_8b_h200.yaml", "--set", "ranks=2"});
  const auto last = [](const json& one) {
    const std::string policy = one["policy"];
    return policy.substr(policy.rfind("; "));
  };
  CHECK(last(r) == last(before));
}

TEST_CASE("a wrong start is exit code 2 with what would be right", "[cli]") {
  const TemporaryFolder folder;
  check_wrong({}, "name a scenario, or give --hf config.json --hardware NODE");
  check_wrong({"zero_infinity_70b", "--hf", network, "--hardware", "a100_8gpu"},
              "--hf: stands beside the scenario zero_infinity_70b; give one of them");
  check_wrong({"--hf", network}, "--hf: needs a machine; add --hardware NODE");
  check_wrong({"zero_infinity_70b", "--seq", "512"},
              "--seq: goes with --hf; of a scenario write --set workload.sequence=512");
  check_wrong({"--deepspeed", file, "--hardware", "a100_8gpu"}, "name a scenario, or give --hf");
  check_wrong({"--hf", network, "--hardware", "a100_8gpu", "--ranks", "9"},
              "--ranks: ranks: is 9, but a node of");
  check_wrong({"--hf", network, "--hardware", "a100_8gpu", "--deepspeed", "/nowhere.json"},
              "/nowhere.json: cannot be opened");
  const std::string fixed = folder.write(
      "ds.json", "{\"train_micro_batch_size_per_gpu\": 1,\n \"bf16\": {\"enabled\": 1}}");
  check_wrong(
      {"--hf", network, "--hardware", "a100_8gpu", "--deepspeed", fixed, "--micro-batch", "2"},
      "ds.json:1:36: train_micro_batch_size_per_gpu: is 1, and --micro-batch says 2");
  const std::string swapped =
      folder.write("nvme.json",
                   "{\"train_batch_size\": 8, \"zero_optimization\": {\"stage\": 3,\n"
                   "\"offload_optimizer\": {\"device\": \"nvme\", \"nvme_path\": \"/n\"}}}");
  check_wrong(
      {"--hf", network, "--hardware", "rtx_a6000_1gpu", "--deepspeed", swapped},
      "nvme.json:2:54: zero_optimization.offload_optimizer.nvme_path: needs a storage path");
}

TEST_CASE("export writes a file, or prints it, and says what it leaves out", "[cli]") {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "ds.json").string();
  const Finished run =
      tidegate_with({"export", "mlp_offload_70b", "--deepspeed", out, "--megatron"});
  CHECK(run.code == 0);
  CHECK_THAT(run.out, Containing("Megatron-DeepSpeed\n  --tensor-model-parallel-size 1 ") &&
                          Containing("--deepspeed_config " + out) &&
                          Containing("To be done by hand, or not to be had"));
  const json written = json::parse(text_of(out));
  CHECK(written["train_batch_size"] == 4);
  CHECK(written["zero_optimization"]["offload_optimizer"]["dist_opt_ratio"] == 3);
  const Finished printed = tidegate_with({"export", "mlp_offload_70b", "--deepspeed", "-"});
  CHECK(json::parse(printed.out) == written);
  CHECK_THAT(printed.err, Containing("left out: "));
}

TEST_CASE("a wrong export is exit code 2, one that cannot be written 3", "[cli]") {
  CHECK(tidegate_with({"export", "mlp_offload_70b"}).code == 2);
  const Finished both =
      tidegate_with({"export", "mlp_offload_70b", "--deepspeed", "-", "--megatron"});
  CHECK(both.code == 2);
  CHECK_THAT(both.err, Containing("name a file"));
  CHECK(tidegate_with({"export", "mlp_offload_70b", "--deepspeed", "/nowhere/ds.json"}).code == 3);
}
