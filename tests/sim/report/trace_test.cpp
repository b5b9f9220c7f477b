#include "sim/report/trace.hpp"

#include <map>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/sim/report/toy.hpp"

using namespace tidegate;
using namespace tidegate::literals;
using nlohmann::json;

namespace {

std::string trace_text(const Run& run) {
  std::ostringstream out;
  write_trace(out, run.plan, run.timeline, run.demands, run.resources);
  return out.str();
}

json trace_of(const Run& run) { return json::parse(trace_text(run)); }

std::vector<json> events_of(const json& trace, const std::string& kind) {
  std::vector<json> found;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == kind) found.push_back(event);
  }
  return found;
}

// Three tasks on a lane of width two: 0 - 2, 1 - 4 and 2 - 3 s.
Run wide_lane() {
  RunBuilder run;
  const LaneId lane = run.plan.lane("io", 0, 2);
  run.add({"read", lane, 0, 0}, Delay{2_s}, demand(0, 2), 0, 2);
  run.add({"read", lane, 0, 1}, Delay{3_s}, demand(0, 3), 1, 4);
  run.add({"read", lane, 0, 2}, Delay{1_s}, demand(0, 1), 2, 3);
  return run.finish(1, 1, {{"drive"}});
}

}  // namespace

TEST_CASE("a trace has a slice per task with its phase, iteration and bytes", "[trace]") {
  const auto slices = events_of(trace_of(two_ranks(20)), "X");
  REQUIRE(slices.size() == 12);
  CHECK(slices[8]["name"] == "write");  // rank 0, iteration 1
  CHECK(slices[8]["ts"] == 15e6);
  CHECK(slices[8]["dur"] == 4e6);
  CHECK(slices[8]["args"]["phase"] == "update");
  CHECK(slices[8]["args"]["iteration"] == 1);
  CHECK(slices[8]["args"]["bytes"] == 1'000'000'000);
}

TEST_CASE("tasks that overlap on a lane get tracks of their own", "[trace]") {
  const auto slices = events_of(trace_of(wide_lane()), "X");
  REQUIRE(slices.size() == 3);
  CHECK(slices[0]["tid"] != slices[1]["tid"]);
  CHECK(slices[2]["tid"] == slices[0]["tid"]);  // free again at 2 s
  CHECK(slices[1]["name"] == "read 1");
}

TEST_CASE("a GPU's pool has a counter of what its allocator reserves", "[trace]") {
  std::vector<json> reserved;
  for (const json& event : events_of(trace_of(two_ranks(20)), "C")) {
    if (event["name"] == "gpu0 reserved") reserved.push_back(event);
  }
  REQUIRE(reserved.size() == 2);
  CHECK(reserved[0]["ts"] == 0);
  CHECK(reserved[0]["args"]["bytes"] == 4293 * 2097152LL);  // 1431 and 2862 times 2 MiB
  CHECK(reserved[1]["ts"] == 2e6);
  CHECK(reserved[1]["args"]["bytes"] == 5247 * 2097152LL);  // and 954
}

TEST_CASE("slices of a track do not overlap", "[trace]") {
  const Run run = GENERATE(two_ranks(20), wide_lane());
  std::map<json, double> free_at;
  auto slices = events_of(trace_of(run), "X");
  std::ranges::stable_sort(slices, {}, [](const json& s) { return s["ts"].get<double>(); });
  for (const json& slice : slices) {
    CHECK(slice["ts"].get<double>() >= free_at[slice["tid"]]);
    free_at[slice["tid"]] = slice["ts"].get<double>() + slice["dur"].get<double>();
  }
}

TEST_CASE("every track of every process has a name, and no two processes share a track",
          "[trace]") {
  const json trace = trace_of(two_ranks(20));
  std::set<json> processes;
  std::map<json, json> process_of_track;
  for (const json& m : events_of(trace, "M")) {
    if (m["name"] == "process_name") processes.insert(m["pid"]);
    if (m["name"] != "thread_name") continue;
    CHECK(process_of_track.emplace(m["tid"], m["pid"]).second);
  }
  CHECK(processes.size() == 4);  // two ranks, memory, resources
  for (const json& slice : events_of(trace, "X")) {
    CHECK(process_of_track.at(slice["tid"]) == slice["pid"]);
  }
  for (const json& counter : events_of(trace, "C")) CHECK(processes.count(counter["pid"]) == 1);
}

TEST_CASE("counters follow the bytes of a pool and end at zero when all is freed", "[trace]") {
  std::vector<std::pair<double, double>> bytes;
  for (const json& c : events_of(trace_of(two_ranks(20)), "C")) {
    if (c["name"] == "gpu0" && c["args"].contains("bytes"))
      bytes.emplace_back(c["ts"], c["args"]["bytes"]);
  }
  // Weights 6, activations 3, gradients 2; at 9 s gradients go and the next activations come.
  CHECK(bytes ==
        std::vector<std::pair<double, double>>{
            {0, 9e9}, {2e6, 11e9}, {5e6, 8e9}, {9e6, 9e9}, {11e6, 11e9}, {14e6, 8e9}, {19e6, 0}});
}

TEST_CASE("counters of resources are capped at one and end at zero", "[trace]") {
  std::vector<std::pair<double, double>> use;
  for (const json& c : events_of(trace_of(wide_lane()), "C")) {
    if (c["name"] == "drive") use.emplace_back(c["ts"], c["args"]["fraction"]);
  }
  CHECK(use == std::vector<std::pair<double, double>>{{0, 1}, {4e6, 0}});
}

TEST_CASE("times keep their nanoseconds and labels their quotes", "[trace]") {
  RunBuilder run;
  run.add({"say \"hi\"", run.plan.lane("a\\b", 0), 0, 7}, Delay{}, {}, 0.000001234, 0.000005678);
  const std::string text = trace_text(run.finish(1, 1, {}));
  CHECK(text.find(R"("ts":1.234,"dur":4.444)") != std::string::npos);
  CHECK(json::parse(text)["traceEvents"].is_array());
  CHECK(text.find(R"("say \"hi\" 7")") != std::string::npos);
}

TEST_CASE("several runs of a plan stand side by side in one trace", "[trace]") {
  // Rank 0, memory and resources of each: processes 1 to 3 and 4 to 6; three slices of each run.
  const Run run = wide_lane();
  const std::vector<TracedRun> runs = {{"predicted", &run.timeline}, {"measured", &run.timeline}};
  std::ostringstream out;
  write_trace(out, run.plan, runs, run.demands, run.resources);
  const json trace = json::parse(out.str());
  std::map<std::string, int> processes;
  for (const json& m : events_of(trace, "M")) {
    if (m["name"] == "process_name") processes[m["args"]["name"]] = m["pid"];
  }
  CHECK(processes.at("predicted: rank 0") == 1);
  CHECK(processes.at("measured: rank 0") == 4);
  CHECK(processes.at("measured: resources") == 6);
  std::map<int, int> slices;
  for (const json& slice : events_of(trace, "X")) ++slices[slice["pid"]];
  CHECK((slices[1] == 3 && slices[4] == 3));
}
