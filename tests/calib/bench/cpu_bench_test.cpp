#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "calib/bench/canaries.hpp"
#include "calib/bench/dram.hpp"
#include "calib/bench/sweeps.hpp"
#include "calib/measure/bench.hpp"
#include "tests/catch.hpp"

using namespace tidegate;
using namespace tidegate::calib;
using namespace tidegate::literals;

namespace {

// A host with little memory: arrays are small and the test short.
Setup small(Effort effort) {
  Setup setup;
  setup.effort = effort;
  setup.host.memory_available = 256_MiB;
  setup.host.last_level_cache = 1_MiB;
  setup.host.locked_limit = 1_MiB;
  setup.threads = 2;
  return setup;
}

const std::set<std::string> of_cpu = {"timer", "noise",       "cores",  "gemm", "attention",
                                      "dram",  "host_copy",   "cast",   "adam", "norm",
                                      "pin",   "first_touch", "latency"};

std::string place(const Row& row) {
  std::string text = row.quantity;
  for (const auto& [name, value] : row.at) text += " " + name + "=" + std::to_string(value);
  return text;
}

// Rows of one kind are alike but for sizes and threads.
std::string kind(const Row& row) {
  std::string text = row.quantity;
  for (const auto& [name, value] : row.at) {
    if (name == "dtype" || name == "scores") text += " " + name + "=" + std::to_string(value);
  }
  return text;
}

}  // namespace

TEST_CASE("every CPU bench is in the table once, with distinct rows at every effort", "[bench]") {
  std::map<std::string, int> seen;
  for (const BenchEntry& entry : bench_table()) {
    if (!of_cpu.contains(std::string(entry.name))) continue;
    ++seen[std::string(entry.name)];
    CHECK(!entry.help.empty());
    std::size_t fewer = 0;
    for (const Effort effort : {Effort::quick, Effort::standard, Effort::full}) {
      REQUIRE(entry.why_not(small(effort)).empty());
      const std::vector<Row> rows = entry.make(small(effort))->rows();
      std::set<std::string> places;
      for (const Row& row : rows) places.insert(place(row));
      INFO(entry.name);
      CHECK(places.size() == rows.size());
      CHECK(rows.size() >= std::max<std::size_t>(fewer, 1));
      fewer = rows.size();
    }
  }
  CHECK(seen.size() == of_cpu.size());
  for (const auto& [name, count] : seen) CHECK(count == 1);
}

TEST_CASE("a sample of each quantity is verified, positive and below its ceiling", "[bench]") {
  for (const BenchEntry& entry : bench_table()) {
    if (!of_cpu.contains(std::string(entry.name))) continue;
    const auto bench = entry.make(small(Effort::standard));
    const std::vector<Row> rows = bench->rows();
    bench->prepare();
    std::set<std::string> seen;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!seen.insert(kind(rows[i])).second) continue;
      const Sample sample = bench->sample(i);
      INFO(place(rows[i]));
      CHECK(sample.is_verified);
      CHECK(sample.value > 0);
      CHECK(sample.elapsed.value() > 0);
      if (rows[i].ceiling > 0) CHECK(sample.value <= rows[i].ceiling);
      CHECK((rows[i].ceiling > 0) == !rows[i].ceiling_from.empty());
    }
    bench->finish();
  }
}

TEST_CASE("products of 16 bits are rows of their own, or it is said why they are not", "[bench]") {
  for (const BenchEntry& entry : bench_table()) {
    if (entry.name != "gemm_16") continue;
    const std::string why = entry.why_not(small(Effort::quick));
    if (!why.empty()) {
      CHECK_THAT(why, Containing("none: "));
      continue;
    }
    const auto bench = entry.make(small(Effort::quick));
    bench->prepare();
    const std::vector<Row> rows = bench->rows();
    REQUIRE(!rows.empty());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(rows[i].at.back().first == "dtype");
      CHECK(rows[i].at.back().second > 0);
      CHECK(bench->sample(i).is_verified);
    }
  }
}

// What is granted to rounding differs between sizes and types.
TEST_CASE("attention is verified at every length and type that is measured", "[bench]") {
  for (const BenchEntry& entry : bench_table()) {
    if (entry.name != "attention") continue;
    for (const Effort effort : {Effort::standard, Effort::full}) {
      const auto bench = entry.make(small(effort));
      bench->prepare();
      const std::vector<Row> rows = bench->rows();
      for (std::size_t i = 0; i < rows.size(); ++i) {
        INFO(place(rows[i]));
        CHECK(bench->sample(i).is_verified);
      }
    }
  }
}

TEST_CASE("noise says how long each piece of work took", "[bench]") {
  for (const BenchEntry& entry : bench_table()) {
    if (entry.name != "noise") continue;
    const auto bench = entry.make(small(Effort::quick));
    bench->prepare();
    const Sample sample = bench->sample(1);
    REQUIRE(!sample.series.empty());
    // value = least · number / sum
    double sum = 0;
    for (const double x : sample.series) sum += x;
    const double least = *std::ranges::min_element(sample.series);
    CHECK(sample.value * sum == Approx(least * static_cast<double>(sample.series.size())));
  }
}

TEST_CASE("canaries are one verified row each", "[bench]") {
  const auto canaries = cpu_canaries(small(Effort::quick));
  REQUIRE(canaries.size() == 2);
  for (const auto& canary : canaries) {
    REQUIRE(canary->rows().size() == 1);
    canary->prepare();
    const Sample sample = canary->sample(0);
    canary->finish();
    CHECK(sample.is_verified);
    CHECK(sample.value > 0);
    CHECK(sample.value < canary->rows()[0].ceiling);
  }
}

TEST_CASE("what may be locked decides whether pinning is measured", "[bench]") {
  for (const BenchEntry& entry : bench_table()) {
    if (entry.name != "pin") continue;
    Setup setup = small(Effort::quick);
    setup.host.locked_limit = 64_KiB;
    CHECK_THAT(entry.why_not(setup), Containing("only 64 KiB may be locked"));
  }
}

TEST_CASE("streams count what the program asks for and what the memory moves", "[bench]") {
  // copy: 4 read and 4 written, and 4 fetched before the store: 12 moved for 8 asked.
  for (const Stream& stream : streams()) {
    const std::string name = stream.quantity;
    if (name == "dram.copy") CHECK(stream.moved() / stream.asked() == 1.5);
    if (name == "dram.copy_streaming") CHECK(stream.moved() == stream.asked());
    if (name == "dram.write") CHECK(stream.moved() / stream.asked() == 2);
  }
  CHECK(streams().size() == 5);
}

TEST_CASE("settings visit one thread and all, and sizes up to the most", "[bench]") {
  Setup setup;
  setup.threads = 6;
  CHECK(thread_counts(setup) == std::vector<int>{1, 2, 4, 6});
  setup.effort = Effort::quick;
  CHECK(thread_counts(setup) == std::vector<int>{1, 6});
  setup.effort = Effort::full;
  CHECK(thread_counts(setup) == std::vector<int>{1, 2, 3, 4, 5, 6});
  setup.threads = 1;
  CHECK(thread_counts(setup) == std::vector<int>{1});
  CHECK(sizes(4, 70, 4) == std::vector<std::size_t>{4, 16, 64, 70});
  CHECK(sizes(4, 64, 4) == std::vector<std::size_t>{4, 16, 64});
  CHECK(sizes(100, 70, 4) == std::vector<std::size_t>{70});
}

TEST_CASE("rows stay the same when a little less memory is available", "[bench]") {
  // A quarter of 200 bytes in pieces of 3: 16 fit; so they do of 193 and of 300, and 32 of 400.
  Setup setup;
  for (const auto& [available, pieces] :
       std::map<double, std::size_t>{{193, 16}, {200, 16}, {300, 16}, {400, 32}}) {
    setup.host.memory_available = Bytes(available);
    CHECK(fitting(setup, 0.25, 3) == pieces);
  }
}

TEST_CASE("keyed contents differ by place and key", "[bench]") {
  std::set<float> seen;
  for (std::size_t i = 0; i < 1000; ++i) seen.insert(keyed(i, 1));
  CHECK(seen.size() > 990);  // 1000 of 2^23 values: no collision is likely, ten are not
  std::size_t same = 0;
  for (std::size_t i = 0; i < 1000; ++i) same += keyed(i, 1) == keyed(i, 2);
  CHECK(same < 10);
  const std::vector<std::size_t> all = spots(5000);
  CHECK(all.front() == 0);
  CHECK(all.back() == 4999);
  CHECK(spots(0).empty());
}
