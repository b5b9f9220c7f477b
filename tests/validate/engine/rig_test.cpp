// Plans of real policies on a paced rig: order, bytes, memory and faults.
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "calib/rig/interrupt.hpp"
#include "models/base/error.hpp"
#include "sim/run/predict.hpp"
#include "tests/validate/engine/laws.hpp"
#include "validate/engine/rig.hpp"
#include "validate/engine/scale.hpp"

using namespace tidegate;
namespace fs = std::filesystem;

namespace {

const char* const tiny = R"(
workload:
  network: {layers: 2, hidden: 128, heads: 2, ffn: 512, vocabulary: 512}
  sequence: 128
hardware: paced_rig
ranks: 1
iterations: 3
policy: {zero: {stage: 3, param_persistence_threshold: 1000}}
)";

// An empty folder that is gone, with whatever is in it, at the end of a test.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "tidegate_rig_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_; }
  bool is_empty() const { return fs::is_empty(path_); }

 private:
  std::string path_;
};

Scenario scenario_of(const std::vector<Override>& changes) {
  return read_scenario(yaml::load_text(tiny, "tiny.yaml"), "tiny", "tiny.yaml", changes);
}

Rig rig_of(const Scenario& scenario, const Folder& folder) {
  return {.machine = scenario.machine,
          .pace = Pace::paced,
          .folders = std::vector<std::string>(scenario.machine.paths().size(), folder.path())};
}

std::size_t threads_now() {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

const std::vector<Override> zero_infinity = {
    {"policy.optimizer",
     "{name: zero_infinity, path: drive, sub_group_size: 100000, buffer_count: 4}"}};

// The error of a run in which the drive has a fault.
std::string error_of(const std::vector<FileFault>& faults, std::int64_t pages_per_check = 1) {
  const Folder folder;
  Scenario scenario = scenario_of(zero_infinity);
  const Prediction p = predict(scenario);
  Rig rig = rig_of(scenario, folder);
  rig.faults = faults;
  rig.pages_per_check = pages_per_check;
  std::string text;
  const std::size_t threads = threads_now();
  try {
    execute(p.plan, rig);
  } catch (const MachineError& error) {
    text = error.what();
  }
  CHECK(folder.is_empty());
  CHECK(threads_now() == threads);
  return text;
}

}  // namespace

TEST_CASE("plans of every policy obey all laws on a paced rig", "[rig][laws]") {
  const std::vector<std::vector<Override>> policies = {
      {{"policy.zero", "{stage: 0}"}, {"ranks", "4"}},
      {{"policy.zero", "{stage: 0}"}, {"policy.activations", "recompute"}},
      {{"policy.zero", "{stage: 2}"}, {"policy.optimizer", "zero_offload"}, {"ranks", "2"}},
      {{"policy.optimizer", "{name: twin_flow, ratio: 0.5, sub_group_size: 100000}"}},
      {{"policy.optimizer", "zero_offload"}, {"policy.parameters", "host"}, {"ranks", "2"}},
      {{"policy.optimizer", "zero_offload"}, {"policy.parameters", "{name: nvme, path: drive}"}},
      zero_infinity,
      {{"policy.optimizer",
        "{name: mlp_offload, paths: [drive, second], sub_group_size: 50000, buffer_count: 4}"},
       {"ranks", "2"}},
      {{"policy.activations",
        "{name: ssdtrain, to: drive, threshold: 10000, adaptive: false, record_first: false}"}},
      {{"policy.activations",
        "{name: ssdtrain, to: drive, threshold: 10000, adaptive: false, gpudirect: false}"},
       {"ranks", "2"},
       {"policy.optimizer",
        "{name: mlp_offload, paths: [drive, second], sub_group_size: 100000, buffer_count: 4}"}},
      {{"policy.activations", "{name: swap_all, to: second, threshold: 10000}"}}};
  const Folder folder;
  for (const std::vector<Override>& changes : policies) {
    INFO(changes.front().second << " " << changes.back().second);
    Scenario scenario = scenario_of(changes);
    const Prediction p = predict(scenario);
    const Execution run = run_on(rig_of(scenario, folder), p.plan);
    // A paced work takes its latency and time alone at least, and no device does more than it can.
    const auto laws = broken_laws(p.plan, run.timeline, p.demands, p.resources);
    CHECK(laws.empty());
    for (const std::string& law : laws) FAIL_CHECK(law);
    CHECK(folder.is_empty());
  }
}

TEST_CASE("memory of a plan without races peaks as predicted", "[rig][memory]") {
  // Kernels of one stream allocate and free in one order, whatever their times.
  const Folder folder;
  for (const char* activations : {"keep", "recompute"}) {
    Scenario scenario =
        scenario_of({{"policy.zero", "{stage: 0}"}, {"policy.activations", activations}});
    const Prediction p = predict(scenario);
    const Timeline measured = execute(p.plan, rig_of(scenario, folder));
    REQUIRE(p.timeline.pools.size() == measured.pools.size());
    for (std::size_t i = 0; i < measured.pools.size(); ++i) {
      CHECK(p.timeline.pools[i].peak == measured.pools[i].peak);
    }
  }
}

TEST_CASE("a plan runs natively, with real products and files", "[rig]") {
  const Folder folder;
  Scenario scenario = scenario_of(zero_infinity);
  const Prediction p = predict(scenario);
  Rig rig = rig_of(scenario, folder);
  rig.pace = Pace::native;
  const Plan half = scaled(p.plan, 0.5);
  check_laws(half, execute(half, rig));
  CHECK(folder.is_empty());
}

TEST_CASE("a full pool stops the run and says whose bytes fill it", "[rig][faults]") {
  const Folder folder;
  Scenario scenario = scenario_of({{"machine.gpus.memory", "1 MiB"}});
  const Prediction p = predict(scenario);
  const std::size_t threads = threads_now();
  CHECK_THROWS_WITH(execute(p.plan, rig_of(scenario, folder)),
                    Containing("pool gpu0 is full") && Containing("of 1 MiB there are"));
  CHECK(threads_now() == threads);
}

TEST_CASE("a drive that fails stops the run with path, task and reason", "[rig][faults]") {
  using Kind = rig::IoFault::Kind;
  SECTION("a read error") {
    const std::string text =
        error_of({{0, Direction::read, {.at = 2, .kind = Kind::error, .error = EIO}}});
    CHECK_THAT(text, Containing("task 'read sub-group") && Containing("tidegate_rig_") &&
                         Containing("offset") && Containing("Input/output error"));
  }
  SECTION("no space left") {
    const std::string text =
        error_of({{0, Direction::write, {.at = 1, .kind = Kind::error, .error = ENOSPC}}});
    CHECK_THAT(text, Containing("task 'write") && Containing("No space left on device"));
  }
  SECTION("bytes that are not those that were written") {
    const std::string text = error_of({{0, Direction::read, {.at = 1, .kind = Kind::corrupt}}});
    CHECK_THAT(text, Containing("task 'read sub-group") && Containing("offset") &&
                         Containing("not those that were written"));
  }
  SECTION("bytes that are not looked at") {
    // Only the first page of each thing is compared; the second request is of later pages.
    const FileFault fault{0, Direction::read, {.at = 1, .kind = Kind::corrupt}};
    CHECK(error_of({fault}, 1'000'000).empty());
  }
  SECTION("a short transfer is continued, and no error") {
    CHECK(error_of({{0, Direction::read, {.at = 1, .kind = Kind::short_transfer}},
                    {0, Direction::write, {.at = 0, .kind = Kind::short_transfer}}})
              .empty());
  }
  SECTION("a drive that is slow is no error either") {
    CHECK(
        error_of({{0, Direction::read, {.at = 1, .kind = Kind::delay, .nanoseconds = 60'000'000}}})
            .empty());
  }
}

TEST_CASE("a storage path without a folder is asked for", "[rig][input]") {
  Scenario scenario = scenario_of(zero_infinity);
  const Prediction p = predict(scenario);
  const Rig rig{.machine = scenario.machine, .pace = Pace::paced, .folders = {}};
  CHECK_THROWS_AS(execute(p.plan, rig), InputError);
}

TEST_CASE("Ctrl-C ends a work that would take long", "[rig][faults]") {
  const Folder folder;
  PlanBuilder builder;
  builder.add({"wait", builder.lane("lane", 0)}, Work(Delay{Seconds(1000)}), {});
  const Plan plan = builder.finish(1, 1);
  Rig slow = rig_of(scenario_of({}), folder);
  for (const Pace pace : {Pace::paced, Pace::native}) {
    slow.pace = pace;
    const rig::InterruptScope scope;
    std::raise(SIGINT);
    CHECK_THROWS_AS(run_on(slow, plan), rig::Interrupted);
  }
}
