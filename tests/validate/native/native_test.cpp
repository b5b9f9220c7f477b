// Predictions of this machine held against this machine: what counts, what is concluded from it.
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/error.hpp"
#include "sim/engine/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"
#include "tests/validate/native/measured_rows.hpp"
#include "tests/validate/native/native_profile.hpp"
#include "validate/engine/files.hpp"
#include "validate/native/native.hpp"
#include "validate/suite/cases.hpp"

using namespace tidegate;
using tidegate::test::all_rows;
using tidegate::test::native_profile;
using tidegate::test::TemporaryFolder;

namespace {

constexpr double gib = 1024. * 1024 * 1024;

NativeRow row(const std::string& name, double predicted, const std::vector<double>& clean,
              std::size_t spoiled = 0) {
  NativeRow r{.name = name, .forecast = Seconds(predicted)};
  for (const double step : clean) {
    r.runs.push_back({.step = Seconds(step), .predicted = Seconds(predicted), .spoiled = {}});
  }
  for (std::size_t i = 0; i < spoiled; ++i) {
    r.runs.push_back({.step = Seconds(100),
                      .predicted = Seconds(predicted),
                      .spoiled = "0.83 cores busy with other work"});
  }
  return r;
}

NativeSuite suite_of(std::vector<NativeRow> rows) {
  NativeSuite suite;
  suite.rows = std::move(rows);
  return suite;
}

SuiteFile native_cases() {
  return read_suite(std::string(TIDEGATE_SOURCE_DIR) + "/validate/suite/native.yaml");
}

}  // namespace

TEST_CASE("a run beside other work does not count", "[native][gate]") {
  // Limits of calibration's samples: 0.05 cores beside work of the CPU; 0.25 cores, since workers
  // of the kernel count as foreign, and 15 MB/s beside files.
  CHECK(spoiled_by({.cores = 0.04}, false).empty());
  CHECK_THAT(spoiled_by({.cores = 0.06}, false), Containing("0.06 cores busy"));
  CHECK(spoiled_by({.cores = 0.06}, true).empty());
  CHECK_THAT(spoiled_by({.cores = 0.3}, true), Containing("0.30 cores busy"));
  CHECK_THAT(spoiled_by({.bytes_per_second = 2e7}, true), Containing("20 MB/s of other traffic"));
  CHECK(spoiled_by({.bytes_per_second = 2e7}, false).empty());
  CHECK_THAT(spoiled_by({.steal = 0.2}, true), Containing("hypervisor took 20 %"));
  CHECK_THAT(spoiled_by({.throttled = 1}, false), Containing("quota"));
}

TEST_CASE("the measurement is the median of clean runs", "[native]") {
  // 2.0, 2.2, 2.5; the run of 100 s was spoiled. Error 2.0 / 2.2 - 1; spread 2.5 / 2.0 - 1.
  const NativeRow r = row("a", 2, {2.5, 2.0, 2.2}, 1);
  CHECK(r.measured() == Seconds(2.2));
  CHECK(r.error().value() == Approx(2 / 2.2 - 1));
  CHECK(r.spread() == Approx(0.25));
  CHECK_FALSE(r.is_inside().has_value());  // no interval
}

TEST_CASE("two runs of one thing differ by the median over all pairs", "[native]") {
  // ln 1.1 twice (neighbours) and 2 ln 1.1 once: the median is ln 1.1.
  CHECK(repeatability({1.0, 1.1, 1.21}).value() == Approx(std::log(1.1)));
  CHECK_FALSE(repeatability({3}));
}

TEST_CASE("a run is held against the rates on both sides of it, a forecast against none",
          "[native]") {
  // The machine gets slower: runs of 2, 2.5 and 4 s, of which 1.8, 2.5 and 4.4 were predicted
  // with the rates around each: -10 %, 0, +10 %. The forecast of 1.8 s misses the median by -28 %.
  NativeRow r = row("a", 1.8, {2, 2.5, 4}, 1);
  r.runs[1].predicted = Seconds(2.5);
  r.runs[2].predicted = Seconds(4.4);
  CHECK(r.error().value() == Approx(0).margin(1e-12));
  CHECK(r.forecast_error().value() == Approx(1.8 / 2.5 - 1));
  CHECK(r.predicted() == Seconds(2.5));
  // A reach of ln 2: from half to twice the middle.
  r.reach = r.forecast_reach = std::log(2);
  CHECK(r.interval()->low.value() == Approx(1.25));
  CHECK(r.forecast_interval()->high.value() == Approx(3.6));
  CHECK(r.is_inside().value());
}

TEST_CASE("median and worst error leave out what shows nothing", "[native]") {
  // Errors +10 %, -20 %, +2 %, and one of +900 % from two clean runs: median 10 %, worst 20 %.
  NativeSuite suite = suite_of({row("a", 1.1, {1, 1, 1}), row("b", 0.8, {1, 1, 1}),
                                row("c", 1.02, {1, 1, 1}), row("d", 10, {1, 1}, 3)});
  CHECK(suite.conclusive() == 3);
  CHECK(suite.score().median_error.value() == Approx(0.10));
  CHECK(suite.score().worst_error.value() == Approx(0.20));
  // Eight conclusive cases are asked for, or all four where there are four: three are too few.
  CHECK(suite.verdict() == Verdict::inconclusive);
  suite.rows.pop_back();
  suite.gate = 0.101;
  CHECK(suite.verdict() == Verdict::agrees);
  // The gate is not on forecasts: those of twice the time leave it as it is.
  for (NativeRow& r : suite.rows) r.forecast = Seconds(2);
  CHECK(suite.forecast_score().median_error.value() == Approx(1));
  CHECK(suite.verdict() == Verdict::agrees);
  suite.gate = 0.09;
  CHECK(suite.verdict() == Verdict::differs);
}

TEST_CASE("a case without a clean run shows no number that was not measured", "[native]") {
  // Three runs of 100 s beside other work.
  const NativeSuite suite = suite_of({row("a", 1, {}, 3)});
  CHECK_FALSE(suite.rows[0].error());
  CHECK_FALSE(suite.rows[0].forecast_error());
  CHECK_FALSE(suite.score().median_error);
  CHECK(suite.verdict() == Verdict::inconclusive);
  CHECK_THAT(to_text(suite), Containing("median of the absolute errors none, worst none") &&
                                 Containing("too few to tell what two differ by"));
  const auto json = nlohmann::json::parse(to_json(suite));
  for (const char* key : {"measured_s", "spread", "error", "forecast_error", "inside"})
    CHECK(json.at("cases").at(0).at(key).is_null());
  for (const char* key : {"median_error", "worst_error"}) {
    CHECK(json.at("score").at(key).is_null());
    CHECK(json.at("forecast_score").at(key).is_null());
  }
  CHECK(json.at("floor").at("repeat_error").is_null());
}

TEST_CASE("coverage counts clean runs and medians of conclusive cases", "[native]") {
  // a: 1.0 · e^±0.1, 0.905 to 1.105, holds 1.0 and 1.05, not 1.2, and the median 1.05. b: from
  // 1.086 on, holds none of 0.8, 0.9, 0.95. c has no interval, d too few clean runs.
  std::vector<NativeRow> rows = {row("a", 1, {1.0, 1.2, 1.05}, 1), row("b", 1.2, {0.8, 0.9, 0.95}),
                                 row("c", 1, {1, 1, 1}), row("d", 1, {1})};
  for (const std::size_t i : {0UL, 1UL, 3UL}) rows[i].reach = 0.1;
  const NativeScore c = suite_of(rows).score();
  CHECK(c.inside == 2);
  CHECK(c.all == 6);
  CHECK(c.medians_inside == 1);
  CHECK(c.medians == 2);
  CHECK(suite_of(rows).forecast_score().medians == 0);
}

TEST_CASE("the native cases load, fit and take as long as is said", "[native][cases]") {
  const SuiteFile file = native_cases();
  CHECK(file.cases.size() >= 8);
  for (const SuiteCase& c : file.cases) {
    INFO(c.name);
    Scenario scenario = scenario_of(file, c);
    TrialOptions options{.pace = Pace::native, .storage = {"/tmp"}};
    const Expected e = expect(scenario, options);
    CHECK(e.plan.ranks == 1);
    double memory = 0;
    std::set<FileKey> keys;
    for (std::size_t p = 0; p < e.plan.pools.size(); ++p) {
      if (e.plan.pools[p].place.tier != Tier::storage) {
        memory += static_cast<double>(e.predicted.pools[p].peak);
      }
    }
    for (std::uint32_t t = 0; t < e.plan.size(); ++t) {
      if (std::holds_alternative<FileIo>(e.plan.work(TaskId{t}))) {
        keys.insert(file_key(e.plan, TaskId{t}));
      }
    }
    double files = 0;  // the old place of everything and the new one
    for (const FileKey& key : keys) files += 2 * static_cast<double>(key.bytes);
    CHECK(memory < 5 * gib);  // beside it, each thread has memory of its own
    CHECK(files < 6 * gib);
    const Comparison as_predicted = compare(e, {.timeline = e.predicted, .lateness = {}});
    CHECK(as_predicted.step.predicted > Seconds(0.2));
    CHECK(as_predicted.step.predicted < Seconds(8));
  }
}

TEST_CASE("a small suite runs natively from a profile", "[native]") {
  const TemporaryFolder folder;
  const std::string rig = std::string(TIDEGATE_SOURCE_DIR) + "/validate/suite/native_rig.yaml";
  const std::string cases = folder.write("cases.yaml", R"(
scenario:
  workload:
    network: {layers: 1, hidden: 256, heads: 4, ffn: 1024, vocabulary: 512}
    sequence: 128
  hardware: )" + rig + R"(
  iterations: 3
  policy: {zero: {stage: 3}}
cases:
  - name: one drive
    set: {policy.optimizer: "{name: zero_infinity, path: drive, sub_group_size: 400000, buffer_count: 4}"}
  - name: two paths
    set: {policy.optimizer: "{name: mlp_offload, paths: [drive, second], sub_group_size: 200000, buffer_count: 4}"}
)");
  NativeOptions options{.file = cases,
                        .hardware = folder.write("this.yaml", native_profile()),
                        .storage = {folder.path().string()},
                        .rounds = 2,
                        .least_clean = 1,
                        .floor_runs = 2,
                        .draws = 16};
  const NativeSuite suite = run_native(options);
  REQUIRE(suite.rows.size() == 2);
  for (const NativeRow& r : suite.rows) {
    INFO(r.name);
    CHECK(r.runs.size() >= 2);
    CHECK(r.forecast > Seconds(0));
    CHECK(r.predicted() == r.forecast);  // one set of rates
    REQUIRE(r.interval());
    CHECK(r.interval()->contains(r.predicted()));
    CHECK(r.interval()->low < r.interval()->high);
    REQUIRE(r.comparison);
    CHECK(r.comparison->same_peaks());
  }
  CHECK(suite.floor.name == "one drive");
  CHECK(suite.floor.runs.size() == 2);
  CHECK_THAT(to_text(suite), Containing("two paths") && Containing("Floor: "));
  const auto json = nlohmann::json::parse(to_json(suite));
  CHECK(json.at("cases").size() == 2);
  CHECK(json.at("cases").at(0).at("runs").size() >= 2);
  // Only what was written into the folder before is in it.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()),
                      std::filesystem::directory_iterator()) == 2);
}

TEST_CASE("a machine that slows down in mid-suite spoils forecasts, not predictions",
          "[native][drift]") {
  // All rates fall from 1 to 0.8 between the passes before and after the second round. Passes
  // tell 1, 1, 1, 0.8, 0.8, 0.8 and runs go at the mean of their neighbours: 1 (floor), 1, 0.9,
  // 0.8, 0.8. So steps are T / 1, T / 0.9, T / 0.8, T / 0.8; the median is T · (1/0.9 + 1/0.8) / 2
  // = 1.1806 T, of which the forecast T is 15.3 % short, and each run is as predicted.
  const TemporaryFolder folder;
  const std::string rig = std::string(TIDEGATE_SOURCE_DIR) + "/validate/suite/native_rig.yaml";
  const std::string cases = folder.write("cases.yaml", R"(
scenario:
  workload:
    network: {layers: 2, hidden: 256, heads: 4, ffn: 1024, vocabulary: 512}
    sequence: 512
  hardware: )" + rig + R"(
  iterations: 3
  policy: {}
cases: [{name: compute}]
)");
  const std::vector<NativePath> paths = {{"drive", folder.path()}, {"second", folder.path()}};
  std::vector<double> speeds;
  const auto rows_at = [](double speed) {
    calib::Measurements m = all_rows();
    m.passes = 1;
    for (calib::RowResult& r : m.rows) {
      for (calib::Block& block : r.blocks) block.samples[0].value *= speed;
    }
    return m;
  };
  NativeMachine machine;
  machine.measure = [&](const RateOptions&) {
    speeds.push_back(speeds.size() < 3 ? 1 : 0.8);
    return rows_at(speeds.back());
  };
  machine.run = [&](const Rig&, const Plan& plan) {
    const double next = speeds.size() < 3 ? 1 : 0.8;
    const Rates now = rates_of(rows_at((speeds.back() + next) / 2), paths);
    const SuiteFile file = read_suite(cases);
    const Scenario scenario = scenario_of(file, file.cases[0], overrides_of(now));
    return Execution{.timeline = simulate(plan, scenario.machine), .lateness = {}};
  };
  const NativeSuite suite = run_native(
      {.file = cases, .storage = {folder.path().string()}, .rounds = 4, .floor_runs = 2}, machine);
  CHECK(suite.passes == 6);
  REQUIRE(suite.rows.size() == 1);
  REQUIRE(suite.rows[0].runs.size() == 4);
  // The launch of a kernel, 1 us, stays as it is; that and picoseconds are the margins.
  for (const NativeRun& run : suite.rows[0].runs)
    CHECK(run.error().value() == Approx(0).margin(2e-3));
  CHECK(suite.forecast_score().median_error.value() == Approx(0.153).margin(2e-3));
  CHECK(suite.score().median_error.value() < 2e-3);
  // Drift widens the forecast's interval only: the prediction's rates differ once in six passes.
  CHECK(*suite.rows[0].forecast_reach > *suite.rows[0].reach);
}

TEST_CASE("folders that do not match the paths are refused", "[native][input]") {
  CHECK_THROWS_WITH(run_native({.storage = {"/tmp", "/tmp", "/tmp"}}),
                    Containing("--storage is given 3 times"));
  CHECK_THROWS_AS(run_native({.storage = {"/there/is/none"}}), InputError);
  CHECK_THROWS_WITH(run_native({.only = "no such", .storage = {"/tmp"}}),
                    Containing("no case has 'no such'"));
}
