// A training that was killed goes on from its last checkpoint as if nothing had happened.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>

#include "calib/rig/interrupt.hpp"
#include "models/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"
#include "tests/validate/execute/executed.hpp"
#include "tests/validate/train/offloaded_cases.hpp"
#include "validate/execute/checkpoint.hpp"
#include "validate/execute/trained_scenario.hpp"

using namespace tidegate;
namespace fs = std::filesystem;

namespace {

class Folder {
 public:
  std::string path() const { return folder_.path().string(); }
  std::string file(const std::string& name) const { return path() + "/" + name; }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

 private:
  test::TemporaryFolder folder_;
};

const offloaded::Case both = {
    "3", "resident",
    "{name: mlp_offload, paths: [nvme, pfs], sub_group_size: 500, buffer_count: 4}",
    "{name: ssdtrain, threshold: 1, to: nvme, adaptive: false, record_first: false}"};

Scenario tiny(int ranks) {
  return load_scenario(std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/mlp_offload_70b.yaml",
                       offloaded::overrides(both, ranks, 1, "bf16"));
}

TrainRequest request(std::int64_t steps) {
  return {.storage = {fs::temp_directory_path().string()}, .steps = steps};
}

TrainedScenario trained(const TrainRequest& request, int ranks = 1) {
  Scenario scenario = tiny(ranks);
  return train_scenario(scenario, request);
}

// Runs something in a process of its own; the signal that ended it, 0 for none.
int signal_of(const std::function<void()>& act) {
  const pid_t id = fork();
  REQUIRE(id >= 0);
  if (id == 0) {
    act();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(id, &status, 0) == id);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

struct Small {
  Workload workload = tiny(1).workload;
  LayerGraph graph = build_graph(workload);
  train::State state = train::train(workload, {.seed = 5, .steps = 2}).state;
  std::string print = fingerprint(workload, graph, {.seed = 5});
};

void overwrite(const std::string& path, std::int64_t at, const std::string& text) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(at);
  file << text;
}

}  // namespace

TEST_CASE("a state that was written is read back bit for bit", "[checkpoint]") {
  const Small small;
  const Folder folder;
  const std::string path = write_checkpoint(folder.path(), small.state, small.print);
  CHECK(path == folder.file("step-00000002.state"));
  CHECK(read_checkpoint(path, small.graph, small.print) == small.state);
  CHECK(read_checkpoint(folder.path(), small.graph, small.print) == small.state);
}

TEST_CASE("the newest state of a folder counts, and two stay", "[checkpoint]") {
  Small small;
  const Folder folder;
  for (const std::int64_t step : {2, 9, 10, 100}) {
    small.state.step = step;
    write_checkpoint(folder.path(), small.state, small.print);
  }
  CHECK(read_checkpoint(folder.path(), small.graph, small.print).step == 100);
  CHECK(folder.files() == 2);
  CHECK(fs::exists(folder.file("step-00000010.state")));
}

TEST_CASE("a state that was written stays, whatever else its folder has", "[checkpoint]") {
  Small small;
  const Folder folder;
  const auto write = [&](std::int64_t step) {
    small.state.step = step;
    return write_checkpoint(folder.path(), small.state, small.print);
  };
  SECTION("states of later steps, of a run that went further") {
    write(100), write(200);
    for (const std::int64_t step : {1, 2, 3}) CHECK(fs::exists(write(step)));
    CHECK(folder.files() == 4);  // 2 and 3, 100 and 200
  }
  SECTION("files of other people, which are neither read nor removed") {
    const std::vector<std::string> names = {"step-best.state", "step-00000001-copy.state",
                                            "step-.state", "step-00000001.state.txt",
                                            "step-1.5.state"};
    for (const std::string& name : names) std::ofstream(folder.file(name)) << "mine";
    for (const std::int64_t step : {2, 3, 4}) write(step);
    for (const std::string& name : names) CHECK(fs::exists(folder.file(name)));
    CHECK(folder.files() == names.size() + 2);
    CHECK(read_checkpoint(folder.path(), small.graph, small.print).step == 4);
  }
}

TEST_CASE("a folder with states of another training takes no more", "[checkpoint][input]") {
  const Small small;
  const Folder folder;
  write_checkpoint(folder.path(), small.state, small.print);
  CHECK_NOTHROW(check_checkpoint_folder(folder.path(), small.graph, small.print));
  CHECK_THROWS_WITH(check_checkpoint_folder(folder.path(), small.graph,
                                            fingerprint(small.workload, small.graph, {.seed = 6})),
                    Containing(folder.path()) && Containing("step-00000002.state") &&
                        Containing("a folder of its own"));
}

TEST_CASE("what is no state is refused without being read to its end", "[checkpoint][input]") {
  const Small small;
  const Folder folder;
  const std::string path = folder.file("other.bin");
  std::ofstream(path, std::ios::binary) << std::string(1 << 20, '\x01');
  std::string text;
  try {
    read_checkpoint(path, small.graph, small.print);
  } catch (const InputError& error) {
    text = error.what();
  }
  CHECK_THAT(text, Containing("other.bin:1:1") && Containing("no training state"));
  CHECK(text.find('\x01') == std::string::npos);
  fs::create_symlink("loop", folder.file("loop"));
  CHECK_THROWS_AS(read_checkpoint(folder.file("loop"), small.graph, small.print), InputError);
}

TEST_CASE("training that stops and goes on is training in one go", "[checkpoint]") {
  const Folder folder;
  TrainRequest first = request(4);
  first.checkpoint = folder.path();
  first.every = 2;
  const TrainedScenario before = trained(first);
  CHECK(before.is_same());
  CHECK(before.checkpoints.size() == 2);
  TrainRequest second = request(7);
  second.resume = folder.path();
  const TrainedScenario after = trained(second);
  CHECK(after.first_step == 4);
  CHECK(after.losses.size() == 3);
  CHECK(after.is_same());  // to seven steps in one go, without any plan
}

TEST_CASE("training that is killed in the middle of a step goes on from the state before",
          "[checkpoint][faults]") {
  for (const int ranks : {1, 2}) {
    const Folder folder;
    const int ended_by = signal_of([&] {
      TrainRequest killed = request(6);
      killed.checkpoint = folder.path();
      killed.every = 2;
      killed.in_one_process = true;
      // In the third plan, some way into it.
      std::thread([&] {
        while (!fs::exists(folder.file("step-00000004.state"))) usleep(200);
        usleep(3000);
        raise(SIGKILL);
      }).detach();
      trained(killed, ranks);
    });
    CHECK(ended_by == SIGKILL);
    TrainRequest resumed = request(6);
    resumed.resume = folder.path();
    const TrainedScenario after = trained(resumed, ranks);
    CHECK(after.first_step == 4);
    CHECK(after.is_same());
  }
}

TEST_CASE("a rank that dies leaves the last state to go on from", "[checkpoint][processes]") {
  const Folder folder;
  TrainRequest first = request(2);
  first.checkpoint = folder.path();
  CHECK(trained(first, 2).is_same());
  TrainRequest second = request(6);
  second.resume = second.checkpoint = folder.path();
  second.deaths = {{.rank = 1, .at = 30}};
  CHECK_THROWS_WITH(trained(second, 2), Containing("the process of rank 1"));
  second.deaths.clear();
  const TrainedScenario after = trained(second, 2);
  CHECK(after.first_step == 2);
  CHECK(after.is_same());
}

TEST_CASE("Ctrl-C ends the training without offload too", "[checkpoint][faults]") {
  const Folder folder;
  TrainRequest first = request(19);
  first.checkpoint = folder.path();
  trained(first);
  // One step under the plan, then twenty without; the signal comes when the state is written.
  TrainRequest second = request(20);
  second.resume = second.checkpoint = folder.path();
  const rig::InterruptScope scope;
  std::thread person([&] {
    while (!fs::exists(folder.file("step-00000020.state"))) usleep(200);
    raise(SIGINT);
  });
  CHECK_THROWS_AS(trained(second), rig::Interrupted);
  person.join();
}

TEST_CASE("a checkpoint that is killed half-way leaves the one before", "[checkpoint][faults]") {
  Small small;
  const Folder folder;
  write_checkpoint(folder.path(), small.state, small.print);
  train::State later = small.state;
  later.step = 3;
  const int ended_by = signal_of([&] {
    int tensors = 0;
    write_checkpoint(folder.path(), later, small.print, [&] {
      if (++tensors == 3) raise(SIGKILL);
    });
  });
  CHECK(ended_by == SIGKILL);
  CHECK(folder.files() == 2);  // the one before, and half of this one under another name
  CHECK(read_checkpoint(folder.path(), small.graph, small.print) == small.state);
  write_checkpoint(folder.path(), later, small.print);
  CHECK(folder.files() == 2);  // both states; what was left is gone
  CHECK(read_checkpoint(folder.path(), small.graph, small.print) == later);
}

TEST_CASE("a damaged state is refused with the place of the damage", "[checkpoint][input]") {
  const Small small;
  const Folder folder;
  const std::string path = write_checkpoint(folder.path(), small.state, small.print);
  const auto size = static_cast<std::int64_t>(fs::file_size(path));
  const auto read = [&] { return read_checkpoint(path, small.graph, small.print); };
  SECTION("in a number") {
    // The last of the file is the second moment of the last tensor.
    overwrite(path, size - 3, "\x55");
    CHECK_THROWS_WITH(read(), Containing("step-00000002.state") && Containing("bytes ") &&
                                  Containing(fmt::format("to {}", size)) &&
                                  Containing("second moment") && Containing("not those that were"));
  }
  SECTION("in the lines") {
    overwrite(path, 30, "9");  // "tidegate training state 1\n" has 26 bytes, "step " five
    CHECK_THROWS_WITH(read(), Containing("step-00000002.state:"));
  }
  SECTION("cut off") {
    fs::resize_file(path, static_cast<std::uintmax_t>(size - 5));
    CHECK_THROWS_WITH(read(), Containing(fmt::format("ends at byte {}", size - 5)));
  }
  SECTION("with more behind it") {
    overwrite(path, size, "x");
    CHECK_THROWS_WITH(read(), Containing(fmt::format("goes on after byte {}", size)));
  }
  SECTION("of another training") {
    CHECK_THROWS_WITH(
        read_checkpoint(path, small.graph, fingerprint(small.workload, small.graph, {.seed = 6})),
        Containing("step-00000002.state:3:1") && Containing("another training") &&
            Containing("seed 5"));
  }
  CHECK_THROWS_AS(read_checkpoint(folder.file("none"), small.graph, small.print), InputError);
}
