#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/sim/planner/small.hpp"
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

// What a text output names under this title, as a shell runs it.
std::string command_under(const std::string& text, const std::string& title) {
  const std::size_t from = text.find("  tidegate ", text.find(title));
  REQUIRE(from != std::string::npos);
  std::size_t end = text.find('\n', from);
  while (text[end - 1] == '\\') end = text.find('\n', end + 1);
  return TIDEGATE_EXECUTABLE + text.substr(from + std::string("  tidegate").size(),
                                           end - from - std::string("  tidegate").size());
}

TEST_CASE("tune starts from a network and a ds_config.json, and its best runs as it stands",
          "[cli]") {
  std::vector<std::string> all = {"tune"};
  all.insert(all.end(), flags.begin(), flags.end());
  // Another layout and batch than the file's.
  all.insert(all.end(), {"--over", "workload.tensor_parallel=2", "--over", "workload.micro_batch=1",
                         "--over", "workload.accumulation=8", "--over", "iterations=3"});
  const Finished run = tidegate_with(all);
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.err, Containing("overlap_comm"));
  const Finished best =
      tidegate::test::run({"/bin/sh", "-c", command_under(run.out, "Run the best") + " --json"});
  INFO(best.err);
  REQUIRE(best.code == 0);
  const json r = json::parse(best.out);
  CHECK(r["tokens_per_iteration"] == 4096);  // 512 · 1 · 8 on one tensor-parallel group of 2
  CHECK_THAT(r["policy"].get<std::string>(), Containing("ZeRO-2; ZeRO-Offload"));
}

TEST_CASE("plan starts from a network, and from its ds_config.json on the machine of its batch",
          "[cli]") {
  const TemporaryFolder folder;
  std::string text = tidegate::test::small_catalog();
  const std::string machine = "drives: [1, 2], memory: 64 GiB";
  REQUIRE(text.find(machine) != std::string::npos);
  text.replace(text.find(machine), machine.size(), "drives: 1, memory: 128 GiB");
  const std::string catalog = folder.write("c.yaml", text);
  const auto plan = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"plan", "--hf", network, "--catalog", catalog, "--seq", "256",
                               "--simulations", "1"});
    return tidegate_with(more);
  };
  const Finished alone = plan({"--batch", "4", "--json"});
  INFO(alone.err);
  REQUIRE(alone.code == 0);
  CHECK(json::parse(alone.out).at("sequences") == 4);
  const Finished both = plan({"--deepspeed", file, "--hardware", "a100_8gpu", "--ranks", "4"});
  INFO(both.err);
  REQUIRE(both.code == 0);
  CHECK_THAT(both.out, Containing("8 sequences"));  // train_batch_size
  const Finished run = tidegate::test::run(
      {"/bin/sh", "-c", command_under(both.out, "Next") + " --json --no-fixes"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(json::parse(run.out)["tokens_per_iteration"] == 2048);  // 8 · 256
  const auto check_refused = [&](const std::vector<std::string>& more, const char* message) {
    const Finished refused = plan(more);
    CHECK(refused.code == 2);
    CHECK_THAT(refused.err, Containing(message));
  };
  check_refused({}, "add --batch SEQUENCES, or --hardware NODE");
  check_refused({"--batch", "4", "--deepspeed", file}, "add --hardware NODE");
}

TEST_CASE("plot and export start from a network too", "[cli]") {
  const Finished plot =
      tidegate_with({"plot", "rok", "--hf", network, "--hardware", "a100_8gpu", "--ranks", "1",
                     "--seq", "512", "--micro-batch", "1", "--policies", "keep", "--json"});
  INFO(plot.err);
  REQUIRE(plot.code == 0);
  CHECK(json::parse(plot.out)["scenario"] == "qwen2.5-3b");
  const Finished out = tidegate_with({"export", "--hf", network, "--hardware", "a100_8gpu",
                                      "--micro-batch", "3", "--deepspeed", "-"});
  INFO(out.err);
  REQUIRE(out.code == 0);
  CHECK(json::parse(out.out)["train_batch_size"] == 24);  // 3 on each of 8 GPUs
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
  CHECK(tidegate_with({"export", "mlp_offload_70b", "--deepspeed", "/nowhere/ds.json"}).code == 2);
}
