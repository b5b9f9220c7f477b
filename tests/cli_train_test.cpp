// `validate run --train` as people meet it: equality, a state to go on from, a rank that is killed.
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

// Process ids whose parent is `parent`.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t id = std::atoi(entry.path().filename().c_str());
    if (id <= 0) continue;
    // "pid (name) state parent …"
    const std::string stat = text_of(entry.path() / "stat");
    const std::size_t name_ends = stat.rfind(')');
    if (name_ends == std::string::npos) continue;
    std::istringstream rest(stat.substr(name_ends + 1));
    std::string state;
    pid_t its_parent = 0;
    rest >> state >> its_parent;
    if (its_parent == parent && state != "Z") found.push_back(id);
  }
  return found;
}

}  // namespace

TEST_CASE("validate run --train says that training is the same, in text and JSON", "[cli][docs]") {
  const Finished text = train({"--steps", "2"});
  INFO(text.err);
  CHECK(text.code == 0);
  CHECK_THAT(text.out,
             Containing("Equal: all losses of 2 steps") && Containing("2 ranks, each a process"));
  const Finished machine = train({"--steps", "2", "--threads", "--json"});
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

TEST_CASE("validate run --train goes on from a checkpoint", "[cli]") {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  CHECK(train({"--steps", "2", "--checkpoint", path, "--every", "1"}).code == 0);
  const Finished more = train({"--steps", "3", "--resume", path});
  CHECK(more.code == 0);
  CHECK_THAT(more.out, Containing("Equal: all losses of 1 steps"));
  const Finished done = train({"--steps", "2", "--resume", path});
  CHECK(done.code == 2);
  CHECK_THAT(done.err, Containing("2 steps are done") && Containing("--steps"));
  const Finished other = train({"--steps", "3", "--resume", path, "--seed", "9"});
  CHECK(other.code == 2);
  CHECK_THAT(other.err, Containing(".state:3:1") && Containing("another training"));
}

TEST_CASE("a rank's process that is killed ends the run with its name", "[cli][faults]") {
  std::thread killer([program = getpid()] {
    // The test's child is the program, whose children are the ranks.
    for (int tries = 0; tries < 3000; ++tries) {
      for (const pid_t child : children_of(program)) {
        const std::vector<pid_t> ranks = children_of(child);
        if (ranks.size() != 2) continue;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        kill(ranks.back(), SIGKILL);
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const Finished killed = train({"--steps", "200"});
  killer.join();
  CHECK(killed.code == 3);
  CHECK_THAT(killed.err, Containing("the process of rank ") && Containing("killed by signal 9"));
  CHECK(children_of(getpid()).empty());
}

TEST_CASE("flags of training need --train", "[cli][input]") {
  const Finished run_alone =
      run({TIDEGATE_EXECUTABLE, "validate", "run", "train_small", "--steps", "3"});
  CHECK(run_alone.code == 2);
  CHECK_THAT(run_alone.err, Containing("--train"));
  const Finished large =
      train({"--set", "workload.network.hidden=65536", "--set", "workload.network.layers=80",
             "--set", "workload.network.ffn=262144"});
  CHECK(large.code == 2);
  CHECK_THAT(large.err, Containing("of memory on this machine") && Containing("take a smaller"));
}
