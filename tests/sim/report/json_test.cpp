#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "sim/report/report.hpp"
#include "tests/catch.hpp"
#include "tests/sim/report/toy.hpp"

using namespace tidegate;
using nlohmann::json;

namespace {

// "pools[].owners[].bytes" for every key of the object and of all objects in it.
void collect_keys(const json& value, const std::string& path, std::set<std::string>& keys) {
  if (value.is_array()) {
    for (const json& item : value) collect_keys(item, path + "[]", keys);
  }
  if (!value.is_object()) return;
  for (const auto& [key, member] : value.items()) {
    const std::string name = path.empty() ? key : path + "." + key;
    keys.insert(name);
    collect_keys(member, name, keys);
  }
}

// The first cells of the tables in docs/report_json.md: | `key` | unit | meaning |
std::set<std::string> documented_keys() {
  std::ifstream file(TIDEGATE_SOURCE_DIR "/docs/report_json.md");
  std::set<std::string> keys;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `")) keys.insert(line.substr(3, line.find('`', 3) - 3));
  }
  return keys;
}

// A report in which no list is empty.
Report full_report() {
  Run run = two_ranks(10);
  run.plan.works[0] = Copy{{Tier::host, 0}, {Tier::gpu, 0}, Bytes(1)};
  run.facts.storage = {{"nvme0", Bytes(1e15), 1}};
  run.facts.assumptions = {"assumed"};
  run.facts.notes = {"noted"};
  run.facts.engine_remarks = {{"ignored", "aio", "ds.json:1:2", "nothing is on nvme"}};
  Report report = run.report();
  report.elasticities = {{"drive", 0.5}};
  report.doubled = Report::Doubled{
      .name = "drive", .iteration_time = Seconds(1), .next = {{"gpu0.compute", 0.4}}};
  report.range = Report::Range{.low = Seconds(1), .high = Seconds(2), .draws = 2};
  report.fixes = {
      .tried = 3,
      .found = {{.what = "less", .sets = {"a=1"}, .pools = {{"gpu", Bytes(1), Bytes(2)}}}}};
  return report;
}

}  // namespace

TEST_CASE("the documentation names exactly the keys of the output", "[json]") {
  std::set<std::string> keys;
  collect_keys(json::parse(to_json(full_report())), "", keys);
  CHECK(keys == documented_keys());
}

TEST_CASE("the JSON report carries the numbers of the report", "[json]") {
  const json report = json::parse(to_json(two_ranks(20).report()));
  CHECK(report["schema"] == "tidegate.report/1");
  CHECK(report["fits"] == true);
  CHECK(report["iteration_s"] == 10.0);
  CHECK(report["first_iteration_s"] == 9.0);
  CHECK(report["phases"] ==
        json{{"forward_s", 2.0}, {"backward_s", 3.0}, {"update_s", 5.0}, {"other_s", 0.0}});
  CHECK(report["pools"][0]["peak_bytes"] == 11'000'000'000);
  CHECK(report["pools"][0]["owners"][0] == json{{"name", "weights"}, {"bytes", 6'000'000'000}});
  CHECK(report["resources"][2]["name"] == "drive");
  CHECK(report["resources"][2]["exposed_s"] == 4.0);
  CHECK(report["bound_s"] == 7.0);
}

TEST_CASE("the JSON report has the changes that fit, or the nearest", "[json]") {
  Report report = two_ranks(20).report();
  CHECK(json::parse(to_json(report))["fixes"].is_null());
  const Report::Fix fix{.what = "half the batch",
                        .sets = {"a.b=1", "c={d: 2}"},
                        .iteration_time = Seconds(3),
                        .tokens_per_second = 7,
                        .slow_down = 1.5,
                        .pools = {{"gpu", Bytes(5), Bytes(6)}}};
  const json as_json = {
      {"what", "half the batch"},
      {"set", {"a.b=1", "c={d: 2}"}},
      {"iteration_s", 3.0},
      {"tokens_per_s", 7.0},
      {"slow_down", 1.5},
      {"pools", {{{"name", "gpu"}, {"count", 1}, {"peak_bytes", 5}, {"capacity_bytes", 6}}}}};
  report.fixes = {.tried = 4, .found = {fix}};
  CHECK(json::parse(to_json(report))["fixes"] ==
        json{{"tried", 4}, {"found", {as_json}}, {"nearest", nullptr}});
  report.fixes = {.tried = 4, .nearest = fix};
  CHECK(json::parse(to_json(report))["fixes"] ==
        json{{"tried", 4}, {"found", json::array()}, {"nearest", as_json}});
}

TEST_CASE("a number that cannot be stated is null", "[json]") {
  const json report =
      json::parse(to_json(two_ranks(std::numeric_limits<double>::infinity()).report()));
  CHECK(report["pools"][0]["capacity_bytes"].is_null());
  for (const char* key : {"life_years", "drive_writes_per_day", "rated_drive_writes_per_day"}) {
    CHECK(report["paths"][0][key].is_null());
  }
}

TEST_CASE("text that is not UTF-8 does not break the JSON", "[json]") {
  Run run = two_ranks(20);
  run.facts.scenario = "caf\xe9 \"x\"\n";
  CHECK(json::accept(to_json(run.report())));
}
