// Predictions of this machine held against this machine: what counts, what is concluded from it.
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "calib/node/estimate.hpp"
#include "models/base/error.hpp"
#include "sim/engine/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/subprocess.hpp"
#include "tests/validate/native/native_profile.hpp"
#include "validate/engine/files.hpp"
#include "validate/native/native.hpp"
#include "validate/suite/cases.hpp"

using namespace tidegate;
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

std::string value_of(const std::vector<Override>& overrides, const std::string& key) {
  for (const auto& [name, text] : overrides) {
    if (name == key) return text;
  }
  return "none";
}

SuiteFile native_cases() {
  return read_suite(std::string(TIDEGATE_SOURCE_DIR) + "/validate/suite/native.yaml");
}

// A row as measured, by three passes.
calib::RowResult measured(const std::string& quantity,
                          std::vector<std::pair<std::string, double>> at, double value,
                          double around = 0, calib::Gate gate = calib::Gate::cpu) {
  calib::RowResult r{{.quantity = quantity, .at = std::move(at), .gate = gate}, {}, {}};
  for (std::int32_t pass = 0; pass < 3; ++pass) {
    const double v = value * (1 + around * (pass - 1));
    r.blocks.push_back({.pass = pass,
                        .is_converged = true,
                        .samples = {{.value = v, .spoiled = {}, .series = {}}}});
  }
  return r;
}

calib::Measurements all_rows() {
  calib::Measurements m;
  m.rows = {measured("rig.gemm", {{"m", 256}, {"n", 256}, {"k", 256}}, 50e9),
            measured("rig.gemm", {{"m", 512}, {"n", 4096}, {"k", 1024}}, 90e9),
            measured("rig.gemm", {{"m", 1024}, {"n", 4096}, {"k", 512}}, 110e9),
            measured("rig.attention", {{"queries", 512}}, 40e9),
            measured("rig.stream", {{"bytes", 1e6}}, 10e9),
            measured("rig.memory", {{"threads", 2}}, 30e9),
            measured("rig.copy", {{"bytes", 1e6}}, 6e9),
            measured("rig.adam", {{"parameters", 1e6}}, 6e8, 0.1),
            measured("rig.cast", {{"elements", 1e6}}, 1.5e9),
            measured("drive.read", {{"block", 1048576}, {"depth", 16}}, 2e9, 0, calib::Gate::io),
            measured("drive.write", {{"block", 1048576}, {"depth", 16}}, 1e9, 0, calib::Gate::io),
            measured("drive.mixed_read", {{"write_cap", 1}}, 1e9, 0, calib::Gate::io),
            measured("drive.mixed_write", {{"write_cap", 1}}, 0.3e9, 0, calib::Gate::io),
            measured("drive.latency_read", {{"block", 4096}}, 1e-4, 0, calib::Gate::io)};
  return m;
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
  CHECK(r.error() == Approx(2 / 2.2 - 1));
  CHECK(r.spread() == Approx(0.25));
  CHECK_FALSE(r.is_inside().has_value());  // no interval
}

TEST_CASE("two runs of one thing differ by the median over all pairs", "[native]") {
  // ln 1.1 twice (neighbours) and 2 ln 1.1 once: the median is ln 1.1.
  CHECK(repeatability({1.0, 1.1, 1.21}) == Approx(std::log(1.1)));
  CHECK(repeatability({3}) == 0);
}

TEST_CASE("a run is held against the rates on both sides of it, a forecast against none",
          "[native]") {
  // The machine gets slower: runs of 2, 2.5 and 4 s, of which 1.8, 2.5 and 4.4 were predicted
  // with the rates around each: -10 %, 0, +10 %. The forecast of 1.8 s misses the median by -28 %.
  NativeRow r = row("a", 1.8, {2, 2.5, 4}, 1);
  r.runs[1].predicted = Seconds(2.5);
  r.runs[2].predicted = Seconds(4.4);
  CHECK(r.error() == Approx(0).margin(1e-12));
  CHECK(r.forecast_error() == Approx(1.8 / 2.5 - 1));
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
  CHECK(suite.score().median_error == Approx(0.10));
  CHECK(suite.score().worst_error == Approx(0.20));
  // Eight conclusive cases are asked for, or all four where there are four: three are too few.
  CHECK(suite.verdict() == Verdict::inconclusive);
  suite.rows.pop_back();
  suite.gate = 0.101;
  CHECK(suite.verdict() == Verdict::agrees);
  // The gate is not on forecasts: those of twice the time leave it as it is.
  for (NativeRow& r : suite.rows) r.forecast = Seconds(2);
  CHECK(suite.forecast_score().median_error == Approx(1));
  CHECK(suite.verdict() == Verdict::agrees);
  suite.gate = 0.09;
  CHECK(suite.verdict() == Verdict::differs);
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

TEST_CASE("deviation over all passes holds the drift, that of neighbours does not",
          "[native][passes]") {
  // 1, 2, 3: deviation 1 over a mean of 2. Neighbours differ by 1: sqrt(2 · 1 / (2 · 2)) = 0.707.
  const std::vector<double> drifting = {1, 2, 3};
  CHECK(deviation(drifting, Spread::over_all) == Approx(0.5));
  CHECK(deviation(drifting, Spread::of_neighbours) == Approx(std::sqrt(0.5) / 2));
  // Noise without drift, 1, 3, 1, 3: over all sqrt(4 / 3), neighbours sqrt(12 / 6), mean 2.
  const std::vector<double> noisy = {1, 3, 1, 3};
  CHECK(deviation(noisy, Spread::over_all) == Approx(std::sqrt(4. / 3) / 2));
  CHECK(deviation(noisy, Spread::of_neighbours) == Approx(std::sqrt(2.) / 2));
  CHECK(deviation(std::vector<double>{7}, Spread::over_all) == 0);
}

TEST_CASE("a moment lies between the nearest passes that know a row", "[native][passes]") {
  // Passes with 1, none, 3 and 4 of a row. Between the second and the third: the first's and the
  // third's, mean 2; after the last: the last.
  const auto pass = [](double value, const char* spoiled) {
    calib::Measurements m{.rows = {measured("rig.copy", {}, value)}, .canaries = {}};
    m.passes = 1;
    m.rows[0].blocks.resize(1);
    m.rows[0].blocks[0].samples[0].spoiled = spoiled;
    return m;
  };
  const std::vector<calib::Measurements> passes = {pass(1, ""), pass(9, "busy"), pass(3, ""),
                                                   pass(4, "")};
  const auto value = [&](std::size_t before) {
    return calib::estimate(around(passes, before).rows[0]).value;
  };
  CHECK(value(0) == Approx(2));
  CHECK(value(1) == Approx(2));
  CHECK(value(2) == Approx(3.5));
  CHECK(value(3) == Approx(4));
  CHECK(calib::block_values(joined(passes).rows[0]) == std::vector<double>{1, 3, 4});
}

TEST_CASE("measured rows become the values of the machine", "[native][rates]") {
  const TemporaryFolder folder;
  const std::vector<NativePath> paths = {{"drive", folder.path()}, {"second", folder.path()}};
  const Rates rates = rates_of(all_rows(), paths);
  const std::vector<Override> set = overrides_of(rates);
  // Two products of 4.29 GFLOP: their median (90 + 110) / 2 is the peak; the small one has half.
  CHECK_THAT(value_of(set, "machine.gpus.peak_16"),
             Catch::Matchers::StartsWith("{value: 100 GFLOP/s, source: "));
  CHECK_THAT(value_of(set, "machine.gpus.gemm_efficiency"),
             Containing("[33.5544 MFLOP, 0.500], [4294.97 MFLOP, 1.000]"));
  CHECK_THAT(value_of(set, "machine.gpus.attention_efficiency"),
             Catch::Matchers::StartsWith("{value: 0.4,"));
  // One thread streams 10 of the 30 GB/s of all.
  CHECK_THAT(value_of(set, "machine.gpus.memory_efficiency"),
             Catch::Matchers::StartsWith("{value: 0.3333,"));
  CHECK_THAT(value_of(set, "machine.host.memory_bandwidth"),
             Catch::Matchers::StartsWith("{value: 30 GB/s,"));
  // Adam's blocks are 0.9, 1 and 1.1: relative deviation 10 %. The others have none of their own
  // and take the pooled one: sqrt(2 · 0.1² / (9 rows · 2)) = 3.33 %.
  CHECK_THAT(value_of(set, "machine.host.adam_rate"), Containing("uncertainty: 10 %"));
  CHECK_THAT(value_of(set, "machine.host.cast_rate"), Containing("uncertainty: 3.3 %"));
  // At once 1 of 2 and 0.3 of 1 GB/s: 0.5 + 0.3 of what one after the other takes, 1.25 times as
  // long. 2 / 1.25 and 1 / 1.25.
  CHECK_THAT(value_of(set, "machine.paths.drive.read_mixed"),
             Catch::Matchers::StartsWith("{value: 1.6 GB/s,"));
  CHECK_THAT(value_of(set, "machine.paths.drive.write_mixed"),
             Catch::Matchers::StartsWith("{value: 0.8 GB/s,"));
  // Paths of one device are measured once, and so are their values.
  CHECK_THAT(value_of(set, "machine.paths.second.read"),
             Catch::Matchers::StartsWith("{value: 2 GB/s,"));
}

TEST_CASE("what could not be measured is said with the reason", "[native][rates]") {
  const TemporaryFolder folder;
  calib::Measurements m = all_rows();
  for (calib::RowResult& r : m.rows) {
    if (r.row.quantity != "rig.copy") continue;
    for (calib::Block& block : r.blocks)
      block.samples[0].spoiled = "0.9 cores busy with other work";
  }
  CHECK_THROWS_WITH(rates_of(m, {{"drive", folder.path()}}),
                    Containing("rig.copy") && Containing("0.9 cores busy with other work"));
}

TEST_CASE("a profile gives the same values, of this host only", "[native][rates]") {
  const TemporaryFolder folder;
  const std::vector<NativePath> paths = {{"drive", folder.path()}, {"second", folder.path()}};
  const std::string file = folder.write("this.yaml", native_profile());
  const std::vector<Override> set = overrides_of(rates_of_profile(file, paths));
  CHECK_THAT(value_of(set, "machine.gpus.peak_16"),
             Catch::Matchers::StartsWith("{value: 50 GFLOP/s, source: ") &&
                 Containing("uncertainty: 10 %"));
  CHECK_THAT(value_of(set, "machine.paths.second.read"),
             Catch::Matchers::StartsWith("{value: 1 GB/s,") && Containing("uncertainty: 20 %"));
  CHECK(value_of(set, "machine.gpus.memory") == "none");
  // The executor multiplies in fp32: that is the rate of both types.
  std::string with_tiles = native_profile();
  const auto replace = [&](const std::string& from, const std::string& to) {
    with_tiles.replace(with_tiles.find(from), from.size(), to);
  };
  replace("peak_16: {value: 50", "peak_16: {value: 400");
  replace(
      "gemm_efficiency: {points: [[33 MFLOP, 0.5]",
      "gemm_efficiency_32: {value: 0.9, source: x}\n  gemm_efficiency: {points: [[33 MFLOP, 0.1]");
  const std::vector<Override> tiles =
      overrides_of(rates_of_profile(folder.write("tiles.yaml", with_tiles), paths));
  CHECK_THAT(value_of(tiles, "machine.gpus.peak_16"),
             Catch::Matchers::StartsWith("{value: 50 GFLOP/s,"));
  CHECK_THAT(value_of(tiles, "machine.gpus.gemm_efficiency"),
             Catch::Matchers::StartsWith("{value: 0.9,"));
  const std::string other = folder.write("other.yaml", native_profile("0123456789ab"));
  CHECK_THROWS_WITH(rates_of_profile(other, paths), Containing("measured on host 0123456789ab"));
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
  for (const NativeRun& run : suite.rows[0].runs) CHECK(run.error() == Approx(0).margin(2e-3));
  CHECK(suite.forecast_score().median_error == Approx(0.153).margin(2e-3));
  CHECK(suite.score().median_error < 2e-3);
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
