#include "sim/run/aio.hpp"

#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"

/// Rates of aio settings on drives whose numbers are round.

using namespace tidegate;
using namespace tidegate::literals;

namespace {

const std::string scenario_file =
    std::string(TIDEGATE_SOURCE_DIR) + "/scenarios/zero_infinity_70b.yaml";

AioTable table_of(std::vector<Override> more, double margin) {
  std::vector<Override> all = {
      {"workload.network.layers", "2"},
      {"machine.paths.nvme.read", "{value: 4 GB/s, assumed: toy}"},
      {"machine.paths.nvme.write", "{value: 2 GB/s, assumed: toy}"},
      {"machine.paths.nvme.latency", "{value: 0 s, assumed: toy}"},
      {"machine.paths.nvme.block_half_size", "{value: 1 MiB, assumed: toy}"}};
  all.insert(all.end(), more.begin(), more.end());
  Scenario scenario = load_scenario(scenario_file, all);
  const Prediction prediction = predict(scenario);
  return aio_table(scenario, prediction, margin);
}

AioPath nvme(std::vector<Override> more, double margin = 0.01) {
  const AioTable table = table_of(std::move(more), margin);
  REQUIRE(!table.paths.empty());
  REQUIRE(table.paths.front().name == "nvme");
  return table.paths.front();
}

AioRates at(const AioPath& path, Bytes in_flight) {
  for (const AioRates& r : path.rates) {
    if (r.in_flight == in_flight) return r;
  }
  FAIL("no such row");
  return {};
}

}  // namespace

TEST_CASE("a rank alone reaches f / (f + half) of a path's rate", "[aio]") {
  const AioPath path = nvme({{"ranks", "1"}});
  CHECK(path.ranks == 1);
  // 1 MiB in flight is half of 4 and of 2 GB/s; 3 MiB would be 3/4: 4 MiB are 4/5.
  CHECK(at(path, 1_MiB).read.value() == Approx(2e9));
  CHECK(at(path, 1_MiB).write.value() == Approx(1e9));
  CHECK(at(path, 4_MiB).read.value() == Approx(3.2e9));
  // f / (f + 1) >= 0.9 from f = 9 on; the next power of two is 16.
  const AioPath nearly = nvme({{"ranks", "1"}}, 0.1);
  REQUIRE(nearly.enough);
  CHECK(*nearly.enough == 16_MiB);
}

TEST_CASE("ranks that use a path at once fill it sooner", "[aio]") {
  const AioPath path = nvme({{"ranks", "4"}});
  CHECK(path.ranks == 4);
  // 4 · f / (f + 1): 0.8 with a quarter of a MiB, 4/3 and so all of it with a half.
  CHECK(at(path, 256_KiB).read_together.value() == Approx(3.2e9));
  CHECK(at(path, 512_KiB).read_together.value() == Approx(4e9));
  REQUIRE(path.enough);
  CHECK(*path.enough == 512_KiB);
}

TEST_CASE("the scenario's own setting is told, and its product alone counts", "[aio]") {
  const auto with = [](const char* block, const char* depth, const char* threads) {
    return nvme({{"policy.optimizer.aio.block_size", block},
                 {"policy.optimizer.aio.queue_depth", depth},
                 {"policy.optimizer.aio.thread_count", threads}});
  };
  const AioPath path = with("512 KiB", "4", "2");
  CHECK(path.now.in_flight() == 4_MiB);
  CHECK(path.at_now.read == with("4 MiB", "1", "1").at_now.read);
  CHECK(path.at_now.read.value() == Approx(3.2e9));
}

TEST_CASE("aio's JSON says what the table says, and docs/aio_json.md names its keys", "[aio]") {
  const AioTable table = table_of({{"ranks", "4"}}, 0.01);
  const nlohmann::json json = nlohmann::json::parse(to_json(table));
  const nlohmann::json& path = json["paths"][0];
  CHECK(json["schema"] == "tidegate.aio/1");
  CHECK(path["name"] == "nvme");
  CHECK(path["ranks"] == 4);
  // Half of 4 GB/s with 1 MiB; four ranks together all of it from 512 KiB on, but for the margin.
  for (const nlohmann::json& rates : path["rates"]) {
    if (rates["in_flight_bytes"] == 1 << 20)
      CHECK(rates["read_bytes_per_s"].get<double>() == Approx(2e9));
  }
  CHECK(path["enough_bytes"] == 512 << 10);

  std::vector<std::string> keys;
  const auto add = [&keys](const nlohmann::json& object, const std::string& of) {
    for (const auto& [key, value] : object.items()) keys.push_back(of + key);
  };
  add(json, ""), add(path, "paths[]."), add(path["rates"][0], "paths[].rates[].");
  std::ifstream file(std::string(TIDEGATE_SOURCE_DIR) + "/docs/aio_json.md");
  std::stringstream docs;
  docs << file.rdbuf();
  std::size_t rows = 0;
  for (std::string line; std::getline(docs, line);) rows += line.starts_with("| `") ? 1U : 0U;
  CHECK(rows == keys.size());
  for (const std::string& key : keys) {
    INFO(key);
    CHECK(docs.str().find("| `" + key + "` |") != std::string::npos);
  }
}

TEST_CASE("a direction that nobody uses has no rate in aio's JSON", "[aio]") {
  AioTable table{.scenario = "s", .profile = "p", .revision = "r", .margin = 0, .paths = {}};
  table.paths.push_back({.name = "nvme", .read = BytesPerSecond(1e9), .write = {}});
  table.paths[0].at_now.read = BytesPerSecond(5e8);
  const nlohmann::json json = nlohmann::json::parse(to_json(table));
  CHECK(json["paths"][0]["now"]["read_bytes_per_s"] == 5e8);
  CHECK(json["paths"][0]["now"]["write_bytes_per_s"].is_null());
}
