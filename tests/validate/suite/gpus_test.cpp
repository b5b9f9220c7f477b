// Scenarios of several ranks on GPUs that are none (tests/validate/engine/test_device.hpp).
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/error.hpp"
#include "sim/timeline/laws.hpp"
#include "tests/catch.hpp"
#include "tests/validate/engine/test_device.hpp"
#include "validate/suite/trial.hpp"

using namespace tidegate;

namespace {

const char* const small = R"(
workload:
  network: {layers: 4, hidden: 128, heads: 4, ffn: 512, vocabulary: 512}
  sequence: 128
  accumulation: 2
hardware: paced_rig
ranks: 2
iterations: 3
policy: {zero: {stage: 0}}
)";

using Groups = std::set<std::vector<std::uint16_t>>;

RealTrial run(const TestMachine& machine, const std::vector<Override>& changes) {
  Scenario scenario =
      read_scenario(yaml::load_text(small, "small.yaml"), "small", "small.yaml", changes);
  RealTrial trial = run_trial(
      scenario,
      {.pace = Pace::native, .storage = rig_of(machine).folders, .devices = machine.devices()});
  const std::vector<Demand> free_of_charge(trial.expected.plan.works.size());
  for (const std::string& law :
       broken_laws(trial.expected.plan, trial.measured.timeline, free_of_charge, {}))
    FAIL_CHECK(law);
  CHECK(machine.is_empty());
  return trial;
}

Groups groups(const TestMachine& machine) {
  Groups all;
  for (const TestTeams::Run& r : machine.teams->runs) all.insert(r.gpus);
  return all;
}

std::set<CollectiveKind> kinds(const TestMachine& machine) {
  std::set<CollectiveKind> all;
  for (const TestTeams::Run& r : machine.teams->runs) all.insert(r.kind);
  return all;
}

}  // namespace

TEST_CASE("ranks that share data sum their gradients on their GPUs", "[gpus]") {
  TestMachine machine(4);
  const RealTrial trial = run(machine, {{"ranks", "4"}});
  CHECK(groups(machine) == Groups{{0, 1, 2, 3}});
  CHECK(kinds(machine) == std::set{CollectiveKind::all_reduce});
  for (const auto& gpu : machine.gpus) CHECK(gpu->computed == machine.gpus[0]->computed);
  CHECK(machine.gpus[0]->computed.value() > 0);
  CHECK(trial.comparison.remarks.empty());
}

TEST_CASE("ranks of ZeRO-3 gather parameters and scatter gradients on their GPUs", "[gpus]") {
  TestMachine machine(2);
  run(machine,
      {{"policy.zero", "{stage: 3, param_persistence_threshold: 0, reduce_bucket_size: 100000}"}});
  CHECK(groups(machine) == Groups{{0, 1}});
  CHECK(kinds(machine) == std::set{CollectiveKind::all_gather, CollectiveKind::reduce_scatter});
}

TEST_CASE("stages of a pipeline send from GPU to GPU", "[gpus]") {
  TestMachine machine(2);
  run(machine, {{"workload.pipeline_parallel", "2"}});
  // Of each of 3 iterations and 2 micro-batches, 128 tokens of 128 numbers in 2 bytes each way.
  constexpr std::size_t bytes = 3 * 2 * 128 * 128 * 2;
  CHECK(machine.gpus[0]->sent == std::map<std::uint16_t, std::size_t>{{1, bytes}});
  CHECK(machine.gpus[1]->sent == std::map<std::uint16_t, std::size_t>{{0, bytes}});
}

TEST_CASE("tensor-parallel groups are teams beside those of data", "[gpus]") {
  TestMachine machine(4);
  run(machine, {{"ranks", "4"},
                {"workload.tensor_parallel", "2"},
                {"policy.optimizer", "zero_offload"},
                {"policy.zero", "{stage: 1}"}});
  CHECK(groups(machine) == Groups{{0, 1}, {2, 3}, {0, 2}, {1, 3}});
}

TEST_CASE("every rank of a tensor-parallel group runs, also where one could stand for it",
          "[gpus]") {
  TestMachine machine(2);
  run(machine, {{"workload.tensor_parallel", "2"}});
  CHECK(groups(machine) == Groups{{0, 1}});
  CHECK(kinds(machine) == std::set{CollectiveKind::all_reduce});
  CHECK(machine.gpus[1]->computed.value() > 0);
  CHECK(machine.gpus[1]->computed == machine.gpus[0]->computed);
}

TEST_CASE("activations of every rank go straight to files, or it is told", "[gpus]") {
  const std::vector<Override> ssdtrain = {
      {"policy.activations", "{name: ssdtrain, to: drive, threshold: 10000, adaptive: false}"}};
  TestMachine direct(2);
  CHECK(run(direct, ssdtrain).comparison.remarks.empty());
  CHECK(direct.files->written > 0);
  for (const auto& gpu : direct.gpus) CHECK(gpu->pieces > 0);

  TestMachine bounced(2);
  bounced.files->why = "libcufile.so.0 is not installed";
  const Comparison c = run(bounced, ssdtrain).comparison;
  CHECK_THAT(to_text(c),
             Containing("through pinned host memory (libcufile.so.0 is not installed)"));
  const auto json = nlohmann::json::parse(to_json(c));
  REQUIRE(json.at("remarks").size() == 1);
  CHECK_THAT(json.at("remarks")[0].get<std::string>(), Containing("pinned host memory"));
}

TEST_CASE("a scenario of more ranks than GPUs is refused before memory is taken", "[gpus]") {
  TestMachine machine(2);
  CHECK_THROWS_AS(run(machine, {{"ranks", "4"}}), InputError);
  machine.teams->why = "libnccl.so.2 is not installed";
  CHECK_THROWS_AS(run(machine, {}), MachineError);
  CHECK(machine.is_untouched());
}
