// `validate run --train` as people meet it: equality, a state to go on from, a rank that is killed.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/subprocess.hpp"

using namespace tidegate::test;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

Finished train(std::vector<std::string> flags) {
  const std::vector<std::string> command = {TIDEGATE_EXECUTABLE,
                                            "validate",
                                            "run",
                                            "train_small",
                                            "--train",
                                            "--storage",
                                            fs::temp_directory_path().string(),
                                            "--set",
                                            "workload.network.layers=1"};
  flags.insert(flags.begin(), command.begin(), command.end());
  return run(flags);
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Of a process that runs, else 0.
pid_t parent_of(pid_t id) {
  // "pid (name) state parent …"
  const std::string stat = text_of("/proc/" + std::to_string(id) + "/stat");
  const std::size_t name_ends = stat.rfind(')');
  if (name_ends == std::string::npos) return 0;
  std::istringstream rest(stat.substr(name_ends + 1));
  std::string state;
  pid_t parent = 0;
  rest >> state >> parent;
  return state == "Z" ? 0 : parent;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t id = std::atoi(entry.path().filename().c_str());
    if (id > 0 && parent_of(id) == parent) found.push_back(id);
  }
  return found;
}

struct Running {
  pid_t program = 0;
  std::vector<pid_t> ranks;
};
// This test's child is the program, whose two children are the ranks; and they have begun.
Running wait_for_ranks() {
  for (int tries = 0; tries < 3000; ++tries) {
    for (const pid_t program : children_of(getpid())) {
      const std::vector<pid_t> ranks = children_of(program);
      if (ranks.size() != 2) continue;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return {program, ranks};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

bool are_gone(const std::vector<pid_t>& processes) {
  const auto are_left = [&] {
    return std::ranges::any_of(processes, [](pid_t id) { return parent_of(id) != 0; });
  };
  for (int tries = 0; are_left() && tries < 500; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return !are_left();
}

}  // namespace

TEST_CASE("training in bf16 says how it multiplies, and is equal without instructions for it too",
          "[cli][train]") {
  const Finished usual = train({"--steps", "2", "--set", "workload.dtype=bf16"});
  CHECK(usual.code == 0);
  CHECK_THAT(usual.out, Containing("Equal: all losses of 2 steps"));
  CHECK_THAT(usual.out, Containing("Matrices were multiplied"));
  // oneDNN's own switch: as on a CPU without AVX512_BF16.
  setenv("ONEDNN_MAX_CPU_ISA", "AVX512_CORE", 1);
  const Finished without = train({"--steps", "2", "--set", "workload.dtype=bf16"});
  unsetenv("ONEDNN_MAX_CPU_ISA");
  CHECK(without.code == 0);
  CHECK_THAT(without.out, Containing("Equal: all losses of 2 steps"));
  CHECK_THAT(without.out, Containing("Matrices were multiplied of the bf16 numbers in fp32 by"));
}

TEST_CASE("validate run --train says that training is the same, in text and JSON", "[cli][docs]") {
  const Finished text = train({"--steps", "2"});
  INFO(text.err);
  CHECK(text.code == 0);
  CHECK_THAT(text.out,
             Containing("Equal: all losses of 2 steps") && Containing("2 ranks, each a process"));
  const TemporaryFolder folder;
  const std::string trace = folder.write("trace.json", "");
  const Finished machine = train({"--steps", "2", "--threads", "--json", "--trace", trace});
  CHECK_THAT(text_of(trace), Containing("predicted: rank 0") && Containing("trained: rank 1"));
  const json output = json::parse(machine.out);
  CHECK(output["equal"] == true);
  CHECK(output["losses"].size() == 2);
  CHECK(output["file_bytes_read"] > 0);
  const std::string docs = text_of(std::string(TIDEGATE_SOURCE_DIR) + "/docs/run_json.md");
  for (const auto& [key, value] : output.items()) {
    INFO(key);
    CHECK_THAT(docs, Containing("`" + key + "`"));
  }
}

TEST_CASE("training on a GPU that is not there says so before anything is written",
          "[cli][train]") {
  const TemporaryFolder folder;
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  const Finished none = train({"--gpu", "--steps", "2", "--checkpoint", folder.path().string()});
  unsetenv("CUDA_VISIBLE_DEVICES");
  CHECK(none.code == 3);
  CHECK_THAT(none.err, Containing("no GPU: "));
  CHECK(none.out.empty());
  CHECK(fs::is_empty(folder.path()));
  const Finished neither = run({TIDEGATE_EXECUTABLE, "validate", "run", "train_small", "--gpu"});
  CHECK(neither.code == 2);
  CHECK_THAT(neither.err, Containing("--native") && Containing("--train"));
}

TEST_CASE("validate run --train goes on from a checkpoint", "[cli]") {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  CHECK(train({"--steps", "2", "--checkpoint", path, "--every", "1"}).code == 0);
  const Finished more = train({"--steps", "3", "--resume", path});
  CHECK(more.code == 0);
  CHECK_THAT(more.out, Containing("Equal: all losses of 1 steps"));
  const Finished nowhere = train({"--steps", "2", "--checkpoint", path + "/absent"});
  CHECK(nowhere.code == 2);
  CHECK_THAT(nowhere.err, Containing("/absent"));
  const Finished done = train({"--steps", "2", "--resume", path});
  CHECK(done.code == 2);
  CHECK_THAT(done.err, Containing("2 steps are done") && Containing("--steps"));
  const Finished other = train({"--steps", "3", "--resume", path, "--seed", "9"});
  CHECK(other.code == 2);
  CHECK_THAT(other.err, Containing(".state:3:1") && Containing("another training"));
}

TEST_CASE("a rank's process that is killed ends the run with its name", "[cli][faults]") {
  std::vector<pid_t> ranks;
  std::thread killer([&] {
    ranks = wait_for_ranks().ranks;
    if (!ranks.empty()) kill(ranks.back(), SIGKILL);
  });
  const Finished killed = train({"--steps", "200"});
  killer.join();
  CHECK(killed.code == 3);
  CHECK_THAT(killed.err, Containing("the process of rank ") && Containing("killed by signal 9"));
  CHECK(ranks.size() == 2);
  CHECK(are_gone(ranks));
}

TEST_CASE("no rank's process outlives a program that is killed", "[cli][faults]") {
  Running running;
  std::thread killer([&] {
    running = wait_for_ranks();
    if (running.program > 0) kill(running.program, SIGKILL);
  });
  CHECK(train({"--steps", "200"}).code == 128 + SIGKILL);
  killer.join();
  CHECK(running.ranks.size() == 2);
  CHECK(are_gone(running.ranks));
}

TEST_CASE("flags of training need --train", "[cli][input]") {
  const Finished run_alone =
      run({TIDEGATE_EXECUTABLE, "validate", "run", "train_small", "--steps", "3"});
  CHECK(run_alone.code == 2);
  CHECK_THAT(run_alone.err, Containing("--train"));
  const Finished paced = train({"--paced"});
  CHECK(paced.code == 2);
  CHECK_THAT(paced.err, Containing("--paced excludes --train"));
  const Finished large =
      train({"--set", "workload.network.hidden=65536", "--set", "workload.network.layers=80",
             "--set", "workload.network.ffn=262144"});
  CHECK(large.code == 2);
  CHECK_THAT(large.err, Containing("of memory on this machine") && Containing("take a smaller"));
}
