#include "validate/peer/peer.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate;
using nlohmann::json;
using test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

struct Read {
  Scenario scenario;
  yaml::Value values;
};

Read read(const std::vector<Override>& overrides = {}) {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "s.yaml",
      "workload:\n"
      "  network: {layers: 2, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, gated_ffn: true, "
      "vocabulary: 1000}\n"
      "  sequence: 128\n"
      "  micro_batch: 4\n"
      "  accumulation: 2\n"
      "hardware: workstation_rtx4090\n"
      "policy:\n"
      "  zero: {stage: 3}\n"
      "  activations: recompute\n"
      "  optimizer: {name: zero_infinity, path: nvme, sub_group_size: 1000000, buffer_count: "
      "12}\n");
  return {load_scenario(path, overrides), scenario_values(path, overrides)};
}

std::string refusal(const std::vector<Override>& overrides) {
  const Read r = read(overrides);
  try {
    peer_files(r.values, r.scenario, {.swap = "/swap"});
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("the files say the scenario's shape, batch and policy", "[peer]") {
  const Read r = read();
  const PeerFiles files = peer_files(r.values, r.scenario, {.swap = "/swap", .iterations = 5});
  const json scenario = json::parse(files.scenario);
  CHECK(scenario["network"]["kv_heads"] == 4);
  CHECK(scenario["recompute"] == true);
  CHECK(scenario["iterations"] == 5);
  // Embedding and head 2 · 1000 · 512; a block q, o 2 · 512², k, v 2 · 512 · 256, three matrices of
  // 512 · 1024, two norms of 512; the last norm: 1024000 + 2 · 2360320 + 512.
  CHECK(scenario["parameters"] == 1024000 + 2 * 2360320 + 512);
  const json config = json::parse(files.config);
  CHECK(config["zero_optimization"]["offload_optimizer"]["nvme_path"] == "/swap");
  CHECK(config["wall_clock_breakdown"] == true);
  CHECK(config["train_micro_batch_size_per_gpu"] == 4);
  for (const Remark& remark : files.remarks) CHECK(remark.key != "nvme_path");
}

TEST_CASE("what the script cannot stand for is refused with the reason", "[peer]") {
  CHECK_THAT(refusal({{"policy.activations", "{name: ssdtrain, to: nvme}"}}),
             Containing("policy.activations=keep"));
  CHECK_THAT(refusal({{"policy.activations", "{name: recompute, mode: selective}"}}),
             Containing("recomputes every block whole"));
  CHECK_THAT(refusal({{"workload.network.positions", "alibi"}}), Containing("rotary, learned"));
  CHECK_THAT(
      refusal({{"workload.network.experts", "4"}, {"workload.network.experts_per_token", "2"}}),
      Containing("no mixture of experts"));
  CHECK_THAT(refusal({{"machine.network.nodes", "2"},
                      {"machine.network.per_node", "1 GB/s"},
                      {"machine.network.latency", "5 us"}}),
             Containing("machine.network.nodes=1"));
}

TEST_CASE("a folder is written whole, and never over another", "[peer]") {
  const Read r = read();
  const PeerFiles files = peer_files(r.values, r.scenario, {.swap = "/swap"});
  const TemporaryFolder folder;
  const std::string target = (folder.path() / "run").string();
  write_peer(target, files);
  std::ifstream in(target + "/ds_config.json");
  std::stringstream text;
  text << in.rdbuf();
  CHECK(text.str() == files.config);
  CHECK_THROWS_WITH(write_peer(target, files), Containing("nothing is overwritten"));
  CHECK_THROWS_AS(write_peer((folder.path() / "no/such/run").string(), files), MachineError);
  std::size_t entries = 0;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    entries += entry.exists() ? 1u : 0u;
  CHECK(entries == 1);
  // A link to itself leads nowhere, and is there.
  fs::create_symlink("loop", folder.path() / "loop");
  CHECK_THROWS_AS(write_peer((folder.path() / "loop").string(), files), InputError);
}

TEST_CASE("the script is Python", "[peer]") {
  const TemporaryFolder folder;
  const Read r = read();
  const std::string target = (folder.path() / "run").string();
  write_peer(target, peer_files(r.values, r.scenario, {.swap = "/swap"}));
  test::Finished compiled;
  try {
    compiled = test::run({"/usr/bin/env", "python3", "-m", "py_compile", target + "/train.py"});
  } catch (const std::runtime_error&) {
    WARN("skipped: no python3");
    return;
  }
  if (compiled.code == 127) {
    WARN("skipped: no python3");
    return;
  }
  INFO(compiled.err);
  CHECK(compiled.code == 0);
}

TEST_CASE("a command's output goes to its log, and its code comes back", "[peer]") {
  const TemporaryFolder folder;
  const std::string log = (folder.path() / "log").string();
  CHECK(run_logged({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, log) == 3);
  std::ifstream in(log);
  std::stringstream text;
  text << in.rdbuf();
  CHECK(text.str() == "out\nerr\n");
  CHECK_THROWS_AS(run_logged({"/bin/true"}, log), MachineError);
  CHECK_THROWS_AS(run_logged({"/no/such/program"}, (folder.path() / "other").string()),
                  MachineError);
  CHECK(deepspeed_version("/no/such/python").empty());
}

TEST_CASE("several ranks are started by torch's launcher", "[peer]") {
  CHECK(peer_command("python3", "run", 1) == std::vector<std::string>{"python3", "run/train.py"});
  CHECK(peer_command("python3", "run", 4).at(4) == "4");
}
