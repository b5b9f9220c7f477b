// Predictions held against real runs: a wrong rate is found, and suites say what they ran.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/error.hpp"
#include "sim/run/predict.hpp"
#include "tests/catch.hpp"
#include "validate/suite/suite.hpp"

using namespace tidegate;
namespace fs = std::filesystem;

namespace {

const char* const small = R"(
workload:
  network: {layers: 2, hidden: 256, heads: 4, ffn: 1024, vocabulary: 512}
  sequence: 256
hardware: paced_rig
ranks: 2
iterations: 3
policy: {zero: {stage: 2}, optimizer: zero_offload}
)";

std::string storage() {
  return fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path().string();
}

Scenario scenario_of(const std::vector<Override>& changes) {
  return read_scenario(yaml::load_text(small, "small.yaml"), "small", "small.yaml", changes);
}

// The prediction of one machine against a run on another, whose profile differs in some rates.
Comparison against(const std::vector<Override>& policy, std::vector<Override> rates) {
  Scenario scenario = scenario_of(policy);
  const Prediction p = predict(scenario);
  rates.insert(rates.end(), policy.begin(), policy.end());
  const Rig rig{.machine = scenario_of(rates).machine,
                .pace = Pace::paced,
                .folders = std::vector<std::string>(2, storage())};
  const Execution run = run_on(rig, p.plan);
  return compare(p.plan, p.timeline, run.timeline, p.demands, p.resources,
                 {.lateness = run.lateness});
}

std::string suite_error(const std::string& text) {
  const std::string path = (fs::temp_directory_path() / "tidegate_suite_test.yaml").string();
  std::ofstream(path) << text;
  try {
    run_suite({.file = path, .trial = {.storage = {storage()}}});
  } catch (const InputError& error) {
    fs::remove(path);
    return error.what();
  }
  fs::remove(path);
  return "";
}

}  // namespace

TEST_CASE("a rate of the profile that is 20 % off is found and its device named", "[suite]") {
  struct Broken {
    const char* device;
    std::vector<Override> policy, rates;  // of the rig: 1/1.2 of the profile's
  };
  const std::vector<Override> none;
  const std::vector<Override> infinity = {
      {"policy.zero", "{stage: 3}"},
      {"policy.optimizer",
       "{name: zero_infinity, path: drive, sub_group_size: "
       "200000, buffer_count: 4, pipeline_read: false, pipeline_write: false}"},
      {"ranks", "1"}};
  const std::vector<Broken> all = {
      {"gpu0.compute", none, {{"machine.gpus.peak_16", "33.33 GFLOP/s"}}},
      {"gpu0.d2h", none, {{"machine.gpus.d2h", "166.7 MB/s"}}},
      {"numa0.cores", none, {{"machine.host.adam_rate", "25e6"}}},
      {"gpu0.fabric", none, {{"machine.fabric.per_gpu", "166.7 MB/s"}}},
      {"drive writes",
       infinity,
       {{"machine.paths.drive.write", "83.33 MB/s"},
        {"machine.paths.drive.write_mixed", "66.67 MB/s"}}}};
  for (const Broken& broken : all) {
    const Comparison c = against(broken.policy, broken.rates);
    INFO(broken.device << "\n" << to_text(c));
    if (c.floor > 0.02) {
      WARN("inconclusive: the host took " << 100 * c.floor << " % of the time");
      continue;
    }
    REQUIRE_FALSE(c.suspects.empty());
    bool is_named = false;
    for (const Suspect& s : c.suspects) {
      is_named |= s.device == broken.device;
      // Nothing is accused that was not touched: the same device, or its like of another GPU.
      CHECK(s.device.substr(s.device.find('.') + 1) ==
            std::string(broken.device).substr(std::string(broken.device).find('.') + 1));
    }
    CHECK(is_named);
    CHECK(c.suspects.front().ratio == Approx(1.2).margin(0.07));
    CHECK(c.step.error().value() < 0);  // predicted too short
  }
}

TEST_CASE("the right profile is within the gate and accuses nobody", "[suite]") {
  const Comparison c = against({}, {});
  INFO(to_text(c));
  CHECK(c.step.measured >= 0.97 * c.step.predicted);
  if (c.floor > 0.02) {
    WARN("inconclusive: the host took " << 100 * c.floor << " % of the time");
    return;
  }
  CHECK(c.verdict == Verdict::agrees);
  CHECK(c.suspects.empty());
  CHECK(c.same_peaks());
}

TEST_CASE("a suite runs the cases that are asked for and says how they came out", "[suite]") {
  const Suite suite = run_suite({.only = "keep, 1", .trial = {.storage = {storage()}}});
  REQUIRE(suite.rows.size() == 1);
  CHECK(suite.rows[0].name == "keep, 1 rank");
  CHECK(suite.rows[0].profile == "paced_rig");
  CHECK(suite.rows[0].comparison.same_peaks());
  CHECK_THAT(to_text(suite), Containing("keep, 1 rank") && Containing("worst"));
  const auto json = nlohmann::json::parse(to_json(suite));
  CHECK(json.at("cases").at(0).at("comparison").at("pools").size() == 4);  // GPU, host, two drives
  CHECK(json.at("pace") == "paced");
}

TEST_CASE("mean and worst error leave out what shows nothing", "[suite]") {
  // -2 %, +6 % and an inconclusive -50 %: mean 4 %, worst 6 %.
  Suite suite;
  for (const double error : {-0.02, 0.06, -0.5}) {
    SuiteRow row;
    row.comparison.step = {Seconds(1 + error), Seconds(1)};
    row.comparison.verdict = error < -0.1 ? Verdict::inconclusive : Verdict::agrees;
    suite.rows.push_back(row);
  }
  CHECK(suite.conclusive() == 2);
  CHECK(suite.mean().value() == Approx(0.04));
  CHECK(suite.worst().value() == Approx(0.06));
  CHECK(suite.verdict() == Verdict::differs);  // the mean is above 3 %
  suite.rows.erase(suite.rows.begin() + 1);    // -2 % is left
  CHECK(suite.verdict() == Verdict::agrees);
}

TEST_CASE("a suite in which nothing is conclusive shows no error and holds no gate", "[suite]") {
  Suite suite;
  suite.rows.resize(2);
  for (SuiteRow& row : suite.rows) {
    row.comparison.step = {Seconds(1), Seconds(2)};
    row.comparison.verdict = Verdict::inconclusive;
  }
  CHECK_FALSE(suite.mean());
  CHECK_FALSE(suite.worst());
  CHECK(suite.verdict() == Verdict::inconclusive);
  CHECK_THAT(to_text(suite), Containing("Inconclusive") && !Containing("absolute errors"));
  const auto json = nlohmann::json::parse(to_json(suite));
  CHECK(json.at("verdict") == "inconclusive");
  CHECK(json.at("mean_error").is_null());
  CHECK(json.at("worst_error").is_null());
}

TEST_CASE("faults of a suite's file are located", "[suite][input]") {
  CHECK_THAT(suite_error("scenario: {}\ncases:\n  - name: a\n    sett: {ranks: 1}\n"),
             Containing("tidegate_suite_test.yaml:4:5") && Containing("sett"));
  CHECK_THAT(suite_error("scenario: {hardware: paced_rig}\ncases: [{name: a}]\n"),
             Containing("case 'a'") && Containing("workload"));
  CHECK_THROWS_WITH(run_suite({.only = "no such case"}), Containing("no case has 'no such case'"));
}

TEST_CASE("what a rig cannot run is said before it runs", "[suite][input]") {
  const auto error = [](const std::vector<Override>& changes) -> std::string {
    Scenario scenario = scenario_of(changes);
    try {
      run_trial(scenario, {.storage = {storage()}});
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  CHECK_THAT(error({{"machine.network", "{nodes: 2, per_node: 1 GB/s, latency: 10 us}"}}),
             Containing("a rig is one node"));
  CHECK_THAT(error({{"machine.gpus.memory", "2 MiB"}}), Containing("does not fit"));
  CHECK_THAT(error({{"machine.paths.drive.cache", "1 GB"},
                    {"machine.paths.drive.write_sustained", "10 MB/s"},
                    {"machine.paths.drive.cache_recovery", "10 MB/s"}}),
             Containing("drive has a cache that fills"));
}
